import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';

/** In PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

/**
 * A certificate that is its own authority.
 * @param names such as `IP:127.0.0.1` or `DNS:example.com`
 */
export function newCertificate(...names: string[]): Certificate {
  const dir = temporaryDirectory('certificate');
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=callplane', '-addext', `subjectAltName=${names.join(',')}`];
  execFileSync('openssl', [...request, ...subject, '-out', cert, '-keyout', key], { stdio: 'pipe' });
  try {
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  } finally {
    rmSync(dir, { recursive: true });
  }
}
