import { useState, type SubmitEvent } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { Field, FormEnd } from '../../components/fields.js';
import { plural } from '../../format.js';

/** @param to the only recipient; without it everyone in the room gets the message */
export function SendMessage({
  roomId,
  to,
  onClose,
}: {
  roomId: string;
  to?: { id: string; name: string };
  onClose: () => void;
}) {
  const [text, setText] = useState('{\n  "text": "Hello"\n}');
  const [problem, setProblem] = useState<string>();
  const send = useApiAction('sendMessage', {
    done: ({ recipients }) => `The message was sent to ${plural(recipients, 'participant')}.`,
    onDone: onClose,
    isForm: true,
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      setProblem('This is no JSON. A text needs double quotes.');
      return;
    }
    setProblem(undefined);
    send.mutate({ roomId, data, ...(to === undefined ? {} : { to: [to.id] }) });
  };
  return (
    <Dialog title={to === undefined ? 'Send a message to everyone' : `Send a message to ${to.name}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="quiet">
          {to === undefined ? 'Every connected client' : 'The participant’s client'} gets this as a <code>message</code>{' '}
          from <code>server</code>. It is not stored: a client that is not connected never gets it.
        </p>
        <Field label="Data" hint="Any JSON value that your clients understand." problem={problem}>
          {(attributes) => (
            <textarea
              {...attributes}
              required
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
        <FormEnd error={send.error} action="Send" isBusy={send.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
