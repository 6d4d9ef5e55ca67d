import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { OPERATIONS, type OperationId } from '@callplane/server/requests';
import { curlOf } from '../api/curl.js';
import { Button } from '../components/button.js';
import { Dialog } from '../components/dialog.js';
import { Code } from '../components/text.js';

/** A button that shows the requests behind the current page as curl commands: the console does nothing else. */
export function PageRequests() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="quiet" icon="developers" onClick={() => setOpen(true)}>
        Requests
      </Button>
      {isOpen && <RequestsDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function RequestsDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const queries = client.getQueryCache().findAll({ type: 'active' });
  return (
    <Dialog side title="The requests of this page" onClose={onClose}>
      <p className="quiet">
        The console uses the public API only. Put a secret API key into <code>CALLPLANE_API_KEY</code> to send the same
        requests.
      </p>
      {queries.map(({ queryHash, queryKey }) => {
        const [id, input] = queryKey as [OperationId, object];
        const { method, path } = OPERATIONS[id];
        return (
          <div key={queryHash} className="stack tight request">
            <h3>
              {method} {path}
            </h3>
            <Code wrap text={curlOf(id, input, location.origin)} label={`curl: ${method} ${path}`} />
          </div>
        );
      })}
    </Dialog>
  );
}
