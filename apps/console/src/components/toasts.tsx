import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';
import type { ApiError } from '../api/api-error.js';
import { CONSOLE_LIMITS } from '../limits.js';
import { Store } from '../store.js';
import { IconButton } from './button.js';
import { ErrorText } from './states.js';
import { useNewestDialog } from './dialog.js';

const SHOWN_MS = 6_000;

interface Toast {
  id: number;
  content: ReactNode;
  kind: 'alert' | 'status';
}

const shown = new Store<readonly Toast[]>([]);
let lastId = 0;

function add(content: ReactNode, kind: Toast['kind']): number {
  lastId += 1;
  const toast = { id: lastId, content, kind };
  shown.change((list) => [...list.slice(1 - CONSOLE_LIMITS.toastsMax), toast]);
  return toast.id;
}

function close(id: number): void {
  shown.change((list) => list.filter((one) => one.id !== id));
}

export function toast(text: string): void {
  const id = add(text, 'status');
  setTimeout(() => close(id), SHOWN_MS);
}

export function toastError(error: ApiError): void {
  add(<ErrorText error={error} />, 'alert');
}

export function Toasts() {
  const toasts = shown.use();
  // Outside of an open dialog, a notice would be below it, and nobody could close or hear it.
  const host = useNewestDialog() ?? document.body;
  // Both regions exist before their first toast, or screen readers would not announce it.
  return createPortal(
    <div className="toasts">
      {(['alert', 'status'] as const).map((kind) => (
        <div key={kind} role={kind} className="toast-list">
          {toasts
            .filter((one) => one.kind === kind)
            .map(({ id, content }) => (
              <div key={id} className={`toast ${kind}`}>
                <div>{content}</div>
                <IconButton icon="close" label="Close the notice" onClick={() => close(id)} />
              </div>
            ))}
        </div>
      ))}
    </div>,
    host,
  );
}
