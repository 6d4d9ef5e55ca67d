import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { opensslCommand, shellQuoted } from '../../apps/console/src/pages/webhooks/snippets.js';

const HOSTILE = `it's "$(touch /tmp/owned)" \`id\` \\ %s %% \u00e9 </script>`;

test('the command that computes a signature signs hostile bodies as they are', () => {
  const request = { signedAt: '1795000000', deliveryId: 'dlv_1', replayCount: 2, body: HOSTILE };
  const secret = 'whsec_c2VjcmV0';
  const output = execFileSync('bash', ['-c', opensslCommand(request)], { input: `${secret}\n`, encoding: 'utf8' });
  const expected = createHmac('sha256', secret).update(`1795000000.dlv_1.2.${HOSTILE}`).digest('hex');
  expect(output).toContain(`= ${expected}`);
});

test('a shell reads quoted text back unchanged', () => {
  const output = execFileSync('sh', ['-c', `printf '%s' ${shellQuoted(HOSTILE)}`], { encoding: 'utf8' });
  expect(output).toBe(HOSTILE);
});
