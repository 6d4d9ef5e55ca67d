import { useEffect, useId, useRef, type ReactNode } from 'react';
import { IconButton } from './button.js';
import { addOpenDialog } from './open-dialogs.js';

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
    const remove = addOpenDialog(dialog);
    return () => {
      remove();
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
        <header className="dialog-header">
          <h2 id={titleId}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={onClose} />
        </header>
        <div className="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

/** The row of buttons at the end of a dialog; the main action comes last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className="dialog-actions">{children}</div>;
}
