import { createContext, useCallback, useContext, useState, type ReactNode } from 'react';
import { Button } from './button.js';
import { Dialog, DialogActions } from './dialog.js';

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
