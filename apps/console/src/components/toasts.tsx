import { createContext, useCallback, useContext, useMemo, useRef, useState, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import type { ApiError } from '../api/api-error.js';
import { CONSOLE_LIMITS } from '../limits.js';
import { IconButton } from './button.js';
import { ErrorText } from './states.js';
import { useNewestDialog } from './dialog.js';

const SHOWN_MS = 6_000;

interface Toast {
  id: number;
  content: ReactNode;
  isError: boolean;
}
interface Toasts {
  /** Reports a success; goes away by itself. */
  toast: (text: string) => void;
  /** Reports a failure; stays until it is closed. */
  toastError: (error: ApiError) => void;
}

const Context = createContext<Toasts | undefined>(undefined);

export function useToasts(): Toasts {
  const toasts = useContext(Context);
  if (toasts === undefined) throw new Error('ToastProvider is missing.');
  return toasts;
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<Toast[]>([]);
  const lastId = useRef(0);
  // Outside of an open dialog, a notice would be below it, and nobody could close or hear it.
  const host = useNewestDialog() ?? document.body;
  const close = useCallback((id: number) => setShown((list) => list.filter((one) => one.id !== id)), []);
  const add = useCallback(
    (content: ReactNode, isError: boolean) => {
      lastId.current += 1;
      const id = lastId.current;
      setShown((list) => [...list.slice(1 - CONSOLE_LIMITS.toastsMax), { id, content, isError }]);
      if (!isError) setTimeout(() => close(id), SHOWN_MS);
    },
    [close],
  );
  const value = useMemo<Toasts>(
    () => ({ toast: (text) => add(text, false), toastError: (error) => add(<ErrorText error={error} />, true) }),
    [add],
  );
  return (
    <Context value={value}>
      {children}
      {/* Both regions exist before their first toast, or screen readers would not announce it. */}
      {createPortal(
        <div className="toasts">
          <ToastList kind="alert" toasts={shown.filter((one) => one.isError)} close={close} />
          <ToastList kind="status" toasts={shown.filter((one) => !one.isError)} close={close} />
        </div>,
        host,
      )}
    </Context>
  );
}

function ToastList({
  kind,
  toasts,
  close,
}: {
  kind: 'alert' | 'status';
  toasts: Toast[];
  close: (id: number) => void;
}) {
  return (
    <div role={kind} className="toast-list">
      {toasts.map(({ id, content }) => (
        <div key={id} className={`toast ${kind}`}>
          <div>{content}</div>
          <IconButton icon="close" label="Close the notice" onClick={() => close(id)} />
        </div>
      ))}
    </div>
  );
}
