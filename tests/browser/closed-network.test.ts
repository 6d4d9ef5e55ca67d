import { createHash, X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import { newCertificate, startTestNginx, type TestCertificate, type TestNginx } from '@callplane/testing';
import { mediaFlows, openBrowser, type Browsers, type ParticipantPage } from './pages.testkit.js';
import { openStage, type Stage } from './stage.testkit.js';

/**
 * A client that reaches one TCP port alone, as behind a firewall that lets only 443 out: nginx with the files of
 * infra/tls.compose.yml carries its signaling over https and its media over TURN, both over TLS on that port.
 */

const DOMAIN = 'callplane.test';
let certificate: TestCertificate;
let nginx: TestNginx;
let stage: Stage;
let browsers: Browsers;

beforeAll(async () => {
  certificate = newCertificate(`DNS:${DOMAIN}`, `DNS:*.${DOMAIN}`);
  stage = await openStage({ relay: true });
  const portOf = ({ url }: { url: string }) => Number(new URL(url).port);
  const port = await freePort();
  const turnUrl = `turns:turn.${DOMAIN}:${port}?transport=tcp`;
  const gateway = await stage.spawnSignaling({ TURN_URLS: turnUrl, STUN_URLS: '' });
  nginx = await startTestNginx(
    { api: [portOf(stage.api)], signaling: [portOf(gateway)] },
    { port, tls: { ...certificate, coturn: stage.coturn! } },
  );
  const spki = new X509Certificate(certificate.cert).publicKey.export({ type: 'spki', format: 'der' });
  browsers = await openBrowser({
    more: [
      `--host-resolver-rules=MAP *.${DOMAIN} 127.0.0.1`,
      `--ignore-certificate-errors-spki-list=${createHash('sha256').update(spki).digest('base64')}`,
    ],
  });
});

test('two participants that reach only the port of https exchange media through TURN over TLS', async () => {
  const roomId = await stage.newRoom();
  const enter = async (name: string): Promise<ParticipantPage> => {
    const { token } = await stage.token(roomId, name);
    const page = await browsers.newParticipant();
    const url = `wss://signaling.${DOMAIN}:${nginx.port}/v1/signaling`;
    await page.join({ url, token, publish: true, iceTransportPolicy: 'relay' });
    return page;
  };
  const both = await Promise.all([enter('Ada'), enter('Bob')]);
  await mediaFlows(both);
  expect(await Promise.all(both.map((page) => page.ask('relays')))).toEqual([
    ['tls', 'tls'],
    ['tls', 'tls'],
  ]);
});
