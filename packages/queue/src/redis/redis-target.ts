import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { unescaped } from '@callplane/core';

export interface RedisAddress {
  host: string;
  port: number;
}

interface RedisCredentials {
  username?: string;
  password?: string;
}

/** PEM texts. Without `ca`, the certificates of the system are trusted. */
export interface RedisTls {
  ca?: string;
  cert?: string;
  key?: string;
}

interface Common {
  credentials: RedisCredentials;
  /** Null: no TLS. With Sentinel, both Sentinels and servers use TLS. */
  tls: RedisTls | null;
}

/** Where Redis is, and how to log in. The result of parsing the settings. */
export type RedisTarget =
  | (Common & { kind: 'server'; address: RedisAddress; database: number })
  | (Common & {
      kind: 'sentinel';
      sentinels: readonly RedisAddress[];
      /** Name of the master, as the Sentinels monitor it. */
      master: string;
      database: number;
      sentinelCredentials: RedisCredentials;
    });

/** A target, or the URL of one without further settings. */
export type RedisLocation = RedisTarget | string;

export interface RedisSettings {
  REDIS_URL: string;
  REDIS_PASSWORD?: string | undefined;
  REDIS_CA_FILE?: string | undefined;
  REDIS_CERT_FILE?: string | undefined;
  REDIS_KEY_FILE?: string | undefined;
  REDIS_SENTINEL_USERNAME?: string | undefined;
  REDIS_SENTINEL_PASSWORD?: string | undefined;
}

/** A wrong setting. The message is one line, names the setting and never contains a password. */
export class RedisSettingsError extends Error {
  readonly setting: keyof RedisSettings;

  constructor(setting: keyof RedisSettings, message: string) {
    super(message);
    this.name = 'RedisSettingsError';
    this.setting = setting;
  }
}

const REDIS_HOSTS_MAX = 32;
const DATABASE_MAX = 65_535;
const DEFAULT_PORT = { server: 6379, sentinel: 26_379 } as const;
const FORMS =
  'redis://:password@host:6379 or redis+sentinel://host1,host2,host3/name (with TLS rediss:// or rediss+sentinel://)';

/**
 * Parses a URL without further settings.
 * @throws RedisSettingsError
 */
export function parseRedisUrl(url: string): RedisTarget {
  return readRedisTarget({ REDIS_URL: url });
}

/**
 * Parses the settings and reads the files that they name.
 * @throws RedisSettingsError
 */
export function readRedisTarget(settings: RedisSettings): RedisTarget {
  const { scheme, kind, userInfo, hosts, path } = splitUrl(settings.REDIS_URL);
  const tls = readTls(settings, scheme === 'rediss');
  const credentials = readCredentials(userInfo, settings.REDIS_PASSWORD);
  const addresses = parseHosts(hosts, kind);
  const sentinelCredentials = readSentinelCredentials(settings, kind);
  if (kind === 'sentinel') {
    const [master = '', ...rest] = path.split('/');
    if (!/^[\w.-]{1,128}$/.test(master)) {
      throw wrong('the name of the master is missing: write redis+sentinel://host1,host2,host3/name');
    }
    const database = parseDatabase(rest.join('/'));
    return { kind, sentinels: addresses, master, database, credentials, sentinelCredentials, tls };
  }
  const [address, ...more] = addresses;
  if (address === undefined || more.length > 0) {
    throw wrong('takes one host with redis://: for several, write redis+sentinel://…/name');
  }
  return { kind, address, database: parseDatabase(path), credentials, tls };
}

export function textOf({ host, port }: RedisAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function wrong(message: string): RedisSettingsError {
  return new RedisSettingsError('REDIS_URL', message);
}

function splitUrl(url: string) {
  const parts = /^(rediss?)(?:\+(sentinel))?:\/\/(?:(.*)@)?([^@/?#]*)(?:\/([^@?#]*))?(?:\?([^@#]*))?$/.exec(url);
  if (parts === null)
    throw wrong(`must be a URL like ${FORMS}, with special characters of the password escaped (%40 for @)`);
  const [, scheme, kind = 'server', userInfo = '', hosts = '', path = '', query = ''] = parts;
  for (const [name, value] of new URLSearchParams(query)) {
    // Hosting providers append `family=0`, which ioredis has always assumed: IPv4 and IPv6.
    if (name !== 'family' || !['0', '4', '6'].includes(value)) {
      throw wrong(`does not take the parameter ${JSON.stringify(name.slice(0, 40))}: remove it`);
    }
  }
  return { scheme, kind: kind as RedisTarget['kind'], userInfo, hosts, path };
}

function parseHosts(hosts: string, kind: RedisTarget['kind']): RedisAddress[] {
  const parts = hosts.split(',');
  if (hosts === '') throw wrong(`names no host: write a URL like ${FORMS}`);
  if (parts.length > REDIS_HOSTS_MAX) throw wrong(`names ${parts.length} hosts: at most ${REDIS_HOSTS_MAX} are used`);
  // No part of the URL is shown: without its @, a password would be read as a host.
  return parts.map((part, index) => {
    const found = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(part);
    const host = found?.[1] ?? found?.[2];
    const port = found?.[3] === undefined ? DEFAULT_PORT[kind] : Number(found[3]);
    const which = `host ${index + 1} of ${parts.length}`;
    if (host === undefined) throw wrong(`${which} is not valid: write host:port, and IPv6 addresses as [::1]:6379`);
    if (port < 1 || port > 65_535) throw wrong(`the port of ${which} must be a number from 1 to 65535`);
    return { host, port };
  });
}

function parseDatabase(text: string): number {
  if (text === '') return 0;
  const database = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (!(database <= DATABASE_MAX)) throw wrong(`the database must be a number from 0 to ${DATABASE_MAX}`);
  return database;
}

function readCredentials(userInfo: string, separate: string | undefined): RedisCredentials {
  const at = userInfo.indexOf(':');
  const username = parsed(at === -1 ? userInfo : userInfo.slice(0, at));
  const inUrl = at === -1 ? '' : parsed(userInfo.slice(at + 1));
  if (inUrl !== '' && separate !== undefined && separate !== inUrl) {
    throw new RedisSettingsError('REDIS_PASSWORD', 'differs from the password in REDIS_URL: remove one of them');
  }
  const password = inUrl === '' ? (separate ?? '') : inUrl;
  if (username !== '' && password === '') {
    throw wrong('names a user without a password: add it, or set REDIS_PASSWORD or REDIS_PASSWORD_FILE');
  }
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function readSentinelCredentials(settings: RedisSettings, kind: RedisTarget['kind']): RedisCredentials {
  const { REDIS_SENTINEL_USERNAME: username, REDIS_SENTINEL_PASSWORD: password } = settings;
  if (kind !== 'sentinel' && (username !== undefined || password !== undefined)) {
    const setting = password === undefined ? 'REDIS_SENTINEL_USERNAME' : 'REDIS_SENTINEL_PASSWORD';
    throw new RedisSettingsError(setting, 'needs REDIS_URL to be a redis+sentinel:// URL');
  }
  if (username !== undefined && password === undefined) {
    throw new RedisSettingsError('REDIS_SENTINEL_USERNAME', 'needs REDIS_SENTINEL_PASSWORD');
  }
  return { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) };
}

function parsed(text: string): string {
  const plain = unescaped(text);
  if (plain === null) throw wrong('must be a URL in which % begins an escape: write %25 for a % of the password');
  return plain;
}

const TLS_FILES = [
  ['REDIS_CA_FILE', 'ca'],
  ['REDIS_CERT_FILE', 'cert'],
  ['REDIS_KEY_FILE', 'key'],
] as const;

function readTls(settings: RedisSettings, isOn: boolean): RedisTls | null {
  const tls: RedisTls = {};
  for (const [setting, part] of TLS_FILES) {
    const file = settings[setting];
    if (file === undefined) continue;
    if (!isOn) throw new RedisSettingsError(setting, 'needs TLS: begin REDIS_URL with rediss');
    tls[part] = readPem(setting, file);
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    const setting = tls.cert === undefined ? 'REDIS_KEY_FILE' : 'REDIS_CERT_FILE';
    throw new RedisSettingsError(
      setting,
      'is set alone: a client certificate needs REDIS_CERT_FILE and REDIS_KEY_FILE',
    );
  }
  if (tls.cert !== undefined) {
    check('REDIS_KEY_FILE', 'is not the key of REDIS_CERT_FILE', () => createSecureContext(tls));
  }
  return isOn ? tls : null;
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

function readPem(setting: keyof RedisSettings, file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new RedisSettingsError(
      setting,
      `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unreadable'}: ${file})`,
    );
  }
  const holds = setting === 'REDIS_KEY_FILE' ? 'PRIVATE KEY' : 'CERTIFICATE';
  if (!text.includes(`${holds}-----`))
    throw new RedisSettingsError(setting, `${file} contains no PEM ${holds.toLowerCase()}`);
  if (setting !== 'REDIS_KEY_FILE') {
    check(setting, `${file} contains a certificate that cannot be read`, () => {
      for (const [certificate] of text.matchAll(CERTIFICATES)) new X509Certificate(certificate);
    });
  }
  return text;
}

function check(setting: keyof RedisSettings, message: string, attempt: () => unknown): void {
  try {
    attempt();
  } catch {
    throw new RedisSettingsError(setting, message);
  }
}
