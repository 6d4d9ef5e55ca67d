import { readFileSync } from 'node:fs';
import { databaseTlsProblem, DatabaseUrlError, parseDatabaseUrl } from '@callplane/core';
import type pg from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';

export interface ConnectionSettings {
  /** `postgresql://…`, with one or several hosts. */
  readonly url: string;
  /** A file with the password; it comes before the password in the URL. */
  readonly passwordFile?: string;
  /** A file with the certificates of the CAs, unless the URL names one. */
  readonly caFile?: string;
}

/** Password, CA and client certificate were read at this moment. */
export interface HostConfig extends Pick<pg.ClientConfig, 'user' | 'database' | 'ssl' | 'application_name'> {
  readonly host: string;
  readonly port: number;
  readonly password: string | undefined;
}

export interface Target {
  /** Options for the session, such as `-c work_mem=5MB`; empty without any. */
  readonly options: string;
  /** Deadline of a connection attempt to one host; undefined if the URL has none. */
  readonly connectTimeoutMs: number | undefined;
  /** One for each host, in the order of the URL. Reads the files whenever it is called. */
  readonly hosts: readonly (() => HostConfig)[];
}

/**
 * Parses the URL and reads all files once.
 * @throws DatabaseUrlError, or the error of a file that cannot be read.
 */
export function connectionTarget({ url, passwordFile, caFile }: ConnectionSettings): Target {
  const parsed = parseDatabaseUrl(url);
  const problem = databaseTlsProblem(parsed, caFile);
  if (problem !== null) throw new DatabaseUrlError(problem);
  const { options = '', connect_timeout: seconds = '0' } = parsed.parameters;
  const password = passwordFile === undefined ? undefined : lastReadable(() => readPassword(passwordFile));
  return {
    options,
    connectTimeoutMs: Number(seconds) === 0 ? undefined : Number(seconds) * 1000,
    hosts: parsed.hosts.map((host) => {
      const config = lastReadable(() => readConfig(host, caFile));
      return () => ({ ...config(), ...(password === undefined ? {} : { password: password() }) });
    }),
  };
}

/** `sslmode` has the meaning of libpq: in particular, `require` with a CA checks the certificate, but not its name. */
function readConfig(hostUrl: string, caFile: string | undefined): HostConfig {
  const withCa = new URL(hostUrl);
  if (caFile !== undefined && !withCa.searchParams.has('sslrootcert')) withCa.searchParams.set('sslrootcert', caFile);
  const config = toClientConfig(parse(withCa.href, { useLibpqCompat: true }));
  const { host = 'localhost', port = 5432, user, database, ssl = false, application_name: applicationName } = config;
  // With an empty CA, Node would trust its own.
  const { ca, cert, key } = (typeof ssl === 'object' ? ssl : {}) as { ca?: string; cert?: string; key?: string };
  for (const text of [ca, cert, key]) if (text !== undefined) refuseEmpty(text);
  const password = config.password as string | undefined;
  const named = applicationName === undefined ? {} : { application_name: applicationName };
  return { host, port, user, password, database, ssl, ...named };
}

function readPassword(file: string): string {
  const text = readFileSync(file, 'utf8');
  refuseEmpty(text);
  return text.replace(/\r?\n$/, '');
}

function refuseEmpty(text: string): void {
  if (text.trim() === '') throw new Error('a file of the connection is empty');
}

/** Reads whenever it is called, and returns the last result if it fails: a rotation may replace a file at this moment. */
function lastReadable<T>(read: () => T): () => T {
  let last = read();
  return () => {
    try {
      last = read();
    } catch {
      // Empty, or away for a moment.
    }
    return last;
  };
}
