import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
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

/** The newest comes last. The browser makes everything outside of it inert, and shows it below. */
let open: readonly HTMLElement[] = [];
const listeners = new Set<() => void>();

function change(next: readonly HTMLElement[]): void {
  open = next;
  for (const listener of listeners) listener();
}

/** @returns a function that takes the dialog away again */
function addOpenDialog(dialog: HTMLElement): () => void {
  change([...open, dialog]);
  return () => change(open.filter((one) => one !== dialog));
}

export function useNewestDialog(): HTMLElement | undefined {
  return useSyncExternalStore(subscribe, () => open.at(-1));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export interface Question {
  title: string;
  /** What will happen, to whom, and whether it can be undone. */
  body: ReactNode;
  /** The verb of the button: "End the room". */
  action: string;
  isDangerous?: boolean;
}
type Ask = (question: Question) => Promise<boolean>;

const Context = createContext<Ask | undefined>(undefined);

/** @returns a function that says what will happen, and resolves to whether the reader agrees */
export function useConfirm(): Ask {
  const ask = useContext(Context);
  if (ask === undefined) throw new Error('ConfirmProvider is missing.');
  return ask;
}

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState<{ question: Question; answer: (agrees: boolean) => void }>();
  const ask = useCallback<Ask>((question) => new Promise((resolve) => setOpen({ question, answer: resolve })), []);
  const close = (agrees: boolean) => {
    open?.answer(agrees);
    setOpen(undefined);
  };
  return (
    <Context value={ask}>
      {children}
      {open !== undefined && (
        <Dialog title={open.question.title} onClose={() => close(false)}>
          <div className="confirm-body">{open.question.body}</div>
          <DialogActions>
            <Button onClick={() => close(false)}>Cancel</Button>
            <Button kind={open.question.isDangerous === true ? 'danger' : 'primary'} onClick={() => close(true)}>
              {open.question.action}
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </Context>
  );
}
