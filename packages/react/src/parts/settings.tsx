'use client';
import * as Dialog from '@radix-ui/react-dialog';
import type { ReactNode } from 'react';
import { useTexts } from '../texts.js';
import { BarButton } from './bar-button.js';
import { DevicePicker } from './device-picker.js';
import { useUi } from './ui.js';

/** Opens a dialog with the devices and the shortcuts. `children` come after them. */
export function SettingsButton({ children }: { children?: ReactNode }) {
  const texts = useTexts();
  const { root, hasShortcuts, setShortcuts } = useUi();
  return (
    <Dialog.Root>
      <Dialog.Trigger asChild>
        <BarButton icon="settings" label={texts.settings} />
      </Dialog.Trigger>
      <Dialog.Portal container={root}>
        <div className="cp-backdrop" />
        <Dialog.Content className="cp-dialog" aria-describedby={undefined}>
          <Dialog.Title>{texts.settings}</Dialog.Title>
          <DevicePicker kind="audioinput" />
          <DevicePicker kind="videoinput" />
          <DevicePicker kind="audiooutput" />
          <label className="cp-check">
            <input type="checkbox" checked={hasShortcuts} onChange={(event) => setShortcuts(event.target.checked)} />
            {texts.shortcuts}
          </label>
          {children}
          <Dialog.Close className="cp-button cp-primary">{texts.close}</Dialog.Close>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
