import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { stopAtEnd } from './resources.js';
import { temporaryDirectory } from './test-servers.js';

/** In PEM. */
export interface TestCertificate {
  ca: string;
  cert: string;
  key: string;
  /** The file with `ca`, as REDIS_CA_FILE names it. */
  caFile: string;
}

/**
 * A certificate that is its own authority.
 * @param names such as `IP:127.0.0.1` or `DNS:example.com`
 */
export function newCertificate(...names: string[]): TestCertificate {
  const dir = temporaryDirectory('certificate');
  stopAtEnd(() => rm(dir, { recursive: true }));
  const [caFile, keyFile] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=callplane', '-addext', `subjectAltName=${names.join(',')}`];
  execFileSync('openssl', [...request, ...subject, '-out', caFile, '-keyout', keyFile], { stdio: 'pipe' });
  const cert = readFileSync(caFile, 'utf8');
  return { ca: cert, cert, key: readFileSync(keyFile, 'utf8'), caFile };
}
