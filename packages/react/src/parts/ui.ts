'use client';
import { createContext, useContext, useMemo, useState } from 'react';

export type PanelName = 'chat' | 'people';

export interface Ui {
  /** The open panel beside the stage. */
  panel: PanelName | undefined;
  setPanel: (panel: PanelName | undefined) => void;
  isEmbedded: boolean;
  hasShortcuts: boolean;
  setShortcuts: (hasShortcuts: boolean) => void;
  /** The element of the call, in which dialogs are shown. */
  root: HTMLElement | null;
  setRoot: (root: HTMLElement | null) => void;
}

const nothing = () => undefined;

export const UiContext = createContext<Ui>({
  panel: undefined,
  setPanel: nothing,
  isEmbedded: false,
  hasShortcuts: false,
  setShortcuts: nothing,
  root: null,
  setRoot: nothing,
});

/** The open panel of the nearest `<Call>`, and how to open another one. */
export function useUi(): Ui {
  return useContext(UiContext);
}

export function useNewUi(isEmbedded: boolean): Ui {
  const [panel, setPanel] = useState<PanelName>();
  const [hasShortcuts, setShortcuts] = useState(!isEmbedded);
  const [root, setRoot] = useState<HTMLElement | null>(null);
  return useMemo(
    () => ({ panel, setPanel, isEmbedded, hasShortcuts, setShortcuts, root, setRoot }),
    [panel, isEmbedded, hasShortcuts, root],
  );
}

export function classes(...names: (string | undefined)[]): string {
  return names.filter((name) => name !== undefined).join(' ');
}
