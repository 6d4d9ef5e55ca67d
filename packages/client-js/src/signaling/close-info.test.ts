import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { connect } from '../call.js';
import { CLOSE_REASONS, type CloseReason } from '../protocol.generated.js';
import { nodePlatform, startScriptedGateway, testToken } from '../scripted-gateway.testkit.js';

/** The README's table of reasons: whether a page may join again after each. */
function documented(): Record<string, boolean> {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Why a call is over\n(.*?)^## /ms.exec(readme) ?? [];
  const rows = section.matchAll(/^\| `(\w+)` *\| (yes|no) +\| .+ \|$/gm);
  return Object.fromEntries([...rows].map(([, reason, canRejoin]) => [reason, canRejoin === 'yes']));
}

describe('why a call is over', () => {
  test('the README has a row for every reason of the protocol, and for both of the SDK', () => {
    const ofProtocol = Object.entries(CLOSE_REASONS).map(([reason, { reconnect }]) => [reason, reconnect !== 'no']);
    const ofSdk = { unreachable: true, connection_lost: true };
    expect(documented()).toEqual({ ...Object.fromEntries(ofProtocol), ...ofSdk });
  });

  test.each(Object.keys(CLOSE_REASONS) as CloseReason[])(
    '%s of a refused resumption is the reason of the call, with `canRejoin` as documented',
    async (reason) => {
      const gateway = await startScriptedGateway({
        resume: (_, connection) => {
          // The pause is longer than the grace period.
          connection.end(reason, { retryAfterSeconds: 60 });
          return undefined;
        },
      });
      const call = await connect({ url: gateway.url, token: testToken, platform: nodePlatform });
      const closed = new Promise((resolve) => call.once('closed', resolve));
      (await gateway.connection(0)).cut();
      expect(await closed).toEqual({ reason, message: expect.any(String), canRejoin: documented()[reason] });
      expect(call.closeInfo).toEqual(await closed);
    },
  );
});
