import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { createServer } from 'node:tls';
import { createLogger, createMetrics } from '@callplane/runtime';
import { newCertificate } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { Certificates } from './certificates.js';

test('the metric shows when a certificate expires, also an untrusted one, and nothing for a server that is away', async () => {
  const stream = new PassThrough();
  const server = createServer(newCertificate('IP:127.0.0.1')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const metrics = createMetrics({ app: 'test' });
  const logger = createLogger({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, 'test', stream);
  const certificates = new Certificates([`127.0.0.1:${port}`], metrics, logger, () => new Date());
  const seconds = async () =>
    /^callplane_certificate_valid_seconds\{.*\} (\S+)$/m.exec(await metrics.text())?.[1] ?? null;
  expect(await seconds()).toBeNull();
  await certificates.pass();
  // The certificate is valid for two days from its creation.
  expect(Number(await seconds()) / 86_400).toBeCloseTo(2, 1);
  server.close();
  await once(server, 'close');
  await certificates.pass();
  expect(await seconds()).toBeNull();
  await new Promise((resolve) => setImmediate(resolve));
  expect(String(stream.read())).toContain('certificate not read');
});
