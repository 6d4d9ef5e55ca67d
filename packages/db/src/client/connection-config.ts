import { readFileSync } from 'node:fs';
import {
  databaseTlsProblem,
  DatabaseUrlError,
  parseDatabaseUrl,
  passfilePassword,
  type DatabaseHost,
  type DatabaseUrl,
} from '@callplane/core';
import type pg from 'pg';

/** Where PostgreSQL is, and how to log in. */
export interface ConnectionSettings {
  /** `postgresql://…`, with one or several hosts. */
  readonly url: string;
  /** A file with the password; it comes before the password in the URL. */
  readonly passwordFile?: string;
  /** A file with the certificates of the CAs, unless the URL names one. */
  readonly caFile?: string;
}

/** Configuration of a connection to one host. Password, CA and client certificate are those of this moment. */
export type HostConfig = Pick<
  pg.ClientConfig,
  'host' | 'port' | 'user' | 'password' | 'database' | 'ssl' | 'application_name'
> & { readonly host: string; readonly port: number; readonly enableChannelBinding: boolean };

export interface Target {
  readonly url: DatabaseUrl;
  /** One for each host, in the order of the URL. Reads the files of TLS whenever it is called. */
  readonly hosts: readonly (() => HostConfig)[];
}

/**
 * Parses the URL and reads all files once.
 * @throws DatabaseUrlError, or the error of a file that cannot be read.
 */
export function connectionTarget(settings: ConnectionSettings): Target {
  const url = parseDatabaseUrl(settings.url);
  const problem = databaseTlsProblem(url, settings.caFile);
  if (problem !== null) throw new DatabaseUrlError(problem);
  const tls = tlsOf(url, settings.caFile);
  const { user, database, applicationName, isChannelBound } = url;
  const passwordOf = passwords(settings, url);
  const hosts = url.hosts.map((host) => (): HostConfig => ({
    ...host,
    ...(user === undefined ? {} : { user }),
    ...(database === undefined ? {} : { database }),
    ...(applicationName === undefined ? {} : { application_name: applicationName }),
    ...passwordOf(host),
    ssl: tls(),
    enableChannelBinding: isChannelBound,
  }));
  tls();
  return { url, hosts };
}

/** node-postgres calls the function for each connection, so a new password in a file needs no restart. */
function passwords(
  settings: ConnectionSettings,
  url: DatabaseUrl,
): (host: DatabaseHost) => Pick<HostConfig, 'password'> {
  const own = lastReadable(settings.passwordFile);
  if (own !== undefined) return () => ({ password: () => own().replace(/\r?\n$/, '') });
  const { password, database = '', user = '' } = url;
  if (password !== undefined) return () => ({ password });
  const passfile = lastReadable(url.passfile);
  if (passfile === undefined) return () => ({});
  return (host) => ({ password: () => passfilePassword(passfile(), { ...host, database, user }) ?? '' });
}

/** The meaning of `sslmode` is libpq's. In particular, `require` with a CA checks the certificate, but not its name. */
function tlsOf(url: DatabaseUrl, caFile: string | undefined): () => HostConfig['ssl'] {
  const ca = lastReadable(url.rootCertFile === 'system' ? undefined : (url.rootCertFile ?? caFile));
  const cert = lastReadable(url.certFile);
  const key = lastReadable(url.keyFile);
  if (url.tls === 'disable') return () => false;
  const isNameChecked = url.tls === 'verify-full';
  return () => ({
    ...(ca === undefined ? { rejectUnauthorized: isNameChecked } : { ca: ca() }),
    ...(cert === undefined ? {} : { cert: cert() }),
    ...(key === undefined ? {} : { key: key() }),
    ...(isNameChecked ? {} : { checkServerIdentity: () => undefined }),
  });
}

/**
 * Reads the file whenever it is called, and returns its last text while it is empty or cannot be read. With an empty CA,
 * Node would trust its own.
 */
function lastReadable(file: string | undefined): (() => string) | undefined {
  if (file === undefined) return undefined;
  let text = readFileSync(file, 'utf8');
  if (text.trim() === '') throw new Error(`the file ${file} is empty`);
  return () => {
    try {
      const read = readFileSync(file, 'utf8');
      if (read.trim() !== '') text = read;
    } catch {
      // A rotation may replace the file at this moment.
    }
    return text;
  };
}
