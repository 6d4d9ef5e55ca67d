'use client';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { type PanelName, useUi } from './ui.js';

/** A list or form beside the stage. The focus moves into it and back, and Escape closes it. */
export function Panel({ name, title, children }: { name: PanelName; title: string; children: ReactNode }) {
  const ref = useRef<HTMLElement>(null);
  const opener = useRef<Element | null>(null);
  const titleId = useId();
  const { setPanel } = useUi();
  useEffect(() => {
    // In development, React runs this twice: the focus is in the panel by then.
    if (ref.current?.contains(document.activeElement) === false) opener.current = document.activeElement;
    const find = (selector: string) => ref.current?.querySelector<HTMLElement>(selector);
    (find('[data-first]:enabled') ?? find('[tabindex]'))?.focus();
    return () => {
      // The element with the focus was in the panel.
      if (document.activeElement === document.body && opener.current instanceof HTMLElement) opener.current.focus();
    };
  }, []);
  return (
    <section
      ref={ref}
      className={`cp-panel cp-${name}`}
      aria-labelledby={titleId}
      onKeyDown={({ key }) => {
        if (key === 'Escape') setPanel(undefined);
      }}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
    </section>
  );
}
