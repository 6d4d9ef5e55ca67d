import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Store } from '../store.js';
import { Button, IconButton } from './button.js';

/**
 * A modal dialog. The browser's own `<dialog>` keeps the focus inside, closes with Escape, makes the page behind inert
 * and gives the focus back. Render it only while it is open.
 * @param closesOutside whether a click beside the dialog closes it
 * @param side whether the dialog covers the right side of the page instead of its middle
 */
export function Dialog({
  title,
  onClose,
  children,
  closesOutside = true,
  side = false,
}: {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  closesOutside?: boolean;
  side?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (dialog === null) return;
    const opener = document.activeElement;
    if (!dialog.open) dialog.showModal();
    openDialogs.change((open) => [...open, dialog]);
    return () => {
      openDialogs.change((open) => open.filter((one) => one !== dialog));
      dialog.close();
      // React removes the dialog before the browser gives the focus back.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={side ? 'dialog side' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (closesOutside && event.target === event.currentTarget) onClose();
      }}
    >
      <div className="dialog-box">
        <header className="row spread dialog-header">
          <h2 id={titleId}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </header>
        <div className="stack dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

/** The newest comes last. The browser makes everything outside of it inert, and shows it below. */
const openDialogs = new Store<readonly HTMLElement[]>([]);

export function useNewestDialog(): HTMLElement | undefined {
  return openDialogs.use().at(-1);
}

export interface Question {
  title: string;
  /** Names the effect, whom it concerns, and whether it can be undone. */
  body: ReactNode;
  action: string;
  isDangerous?: boolean;
}
const asked = new Store<{ question: Question; answer: (agrees: boolean) => void } | undefined>(undefined);

/** Names the effect, and resolves to whether the reader agrees. */
export function confirm(question: Question): Promise<boolean> {
  return new Promise((answer) => asked.set({ question, answer }));
}

export function Confirmation() {
  const open = asked.use();
  // A question does not outlive its session.
  useEffect(() => () => asked.set(undefined), []);
  if (open === undefined) return null;
  const { title, body, action, isDangerous = false } = open.question;
  const close = (agrees: boolean) => {
    open.answer(agrees);
    asked.set(undefined);
  };
  return (
    <Dialog title={title} onClose={() => close(false)}>
      <div className="stack tight confirm-body">{body}</div>
      <div className="row dialog-actions">
        <Button onClick={() => close(false)}>Cancel</Button>
        <Button kind={isDangerous ? 'danger' : 'primary'} onClick={() => close(true)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
