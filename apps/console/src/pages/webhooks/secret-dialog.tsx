import { Button } from '../../components/button.js';
import { Dialog, DialogActions } from '../../components/dialog.js';
import { Code } from '../../components/text.js';

/** Shows a signing secret once, and holds it only while the dialog is open. A click beside it must not lose it. */
export function SecretDialog({ secret, version, onClose }: { secret: string; version: number; onClose: () => void }) {
  return (
    <Dialog title={`Signing secret, version ${version}`} onClose={onClose} closesOutside={false}>
      <div className="stack">
        <p className="notice warn">
          Store this secret now. It is shown once: neither the console nor the API can show it again.
        </p>
        <Code text={secret} label="Signing secret" wrap />
        <p className="quiet">
          Your receiver verifies each request with it. The header <code>x-service-signing-key-version</code> of a
          request names the version, here <code>{version}</code>.
        </p>
      </div>
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I have stored it
        </Button>
      </DialogActions>
    </Dialog>
  );
}
