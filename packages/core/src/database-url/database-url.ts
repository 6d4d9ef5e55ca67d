/** How a connection is encrypted, and what it checks. The words and their meaning are libpq's. */
type TlsMode = 'disable' | 'require' | 'verify-ca' | 'verify-full';

export interface DatabaseHost {
  /** A name, an address, or the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

/** A parsed database URL. Names of files are not opened here. */
export interface DatabaseUrl {
  /** At least one. A connection tries them in this order, or in any if `isShuffled`. */
  readonly hosts: readonly DatabaseHost[];
  readonly isShuffled: boolean;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly tls: TlsMode;
  /** The file of the CAs; `system` for those of Node. */
  readonly rootCertFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  /** A password file in libpq's format. */
  readonly passfile?: string;
  readonly isChannelBound: boolean;
  /** Options for the session, such as `-c work_mem=5MB`. */
  readonly options: readonly string[];
  readonly applicationName?: string;
  /** Deadline of a connection attempt to one host. */
  readonly connectTimeoutMs?: number;
}

/** The message names the parameter, and never contains a part of the URL that may be secret. */
export class DatabaseUrlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DatabaseUrlError';
  }
}

const DATABASE_HOSTS_MAX = 16;
const DEFAULT_PORT = '5432';
const TLS_MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'] satisfies TlsMode[];
/** Parameters of libpq and Prisma that change nothing here. All other unknown ones are refused. */
const IGNORED = new Set([
  'schema',
  'connection_limit',
  'pool_timeout',
  'socket_timeout',
  'statement_cache_size',
  'pgbouncer',
  'client_encoding',
  'fallback_application_name',
  'gssencmode',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'tcp_user_timeout',
  'uselibpqcompat',
]);

/**
 * Parses `postgresql://user:password@host1:port,host2:port/database?parameters` as libpq does. Unlike libpq, accepts
 * spaces, and a `%` that begins no escape.
 * @throws DatabaseUrlError
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const [, credentials, addresses = '', path, query = ''] =
    /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(text) ?? [];
  if (!/^postgres(?:ql)?:\/\/[^#]+$/i.test(text) || /[\r\n\0]/.test(text))
    throw new DatabaseUrlError('cannot be parsed');
  if (credentials === undefined && addresses === '' && path === undefined && query === '') {
    throw new DatabaseUrlError('cannot be parsed');
  }
  const parameters = readParameters(query);
  const [user, password] = split(credentials ?? '', ':').map(decode);
  // libpq takes `ssl=true` of JDBC's URLs as well.
  const isEncrypted = parameters.take('ssl') === 'true';
  const tls = tlsMode(parameters.take('sslmode') ?? (isEncrypted ? 'require' : undefined));
  const rootCertFile = parameters.take('sslrootcert');
  const given: Record<string, string | undefined> = {
    user: parameters.take('user') ?? user,
    password: parameters.take('password') ?? password,
    database: parameters.take('dbname') ?? decode(path ?? ''),
    rootCertFile,
    certFile: parameters.take('sslcert'),
    keyFile: parameters.take('sslkey'),
    passfile: parameters.take('passfile'),
    applicationName: parameters.take('application_name'),
  };
  oneOf('target_session_attrs', parameters.take('target_session_attrs'), ['any', 'read-write', 'primary']);
  const connectTimeoutMs = seconds('connect_timeout', parameters.take('connect_timeout'));
  const parsed = {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== '')),
    hosts: readHosts(addresses, parameters.take('host'), parameters.take('port')),
    isShuffled: oneOf('load_balance_hosts', parameters.take('load_balance_hosts'), ['disable', 'random']) === 'random',
    isChannelBound:
      oneOf('channel_binding', parameters.take('channel_binding'), ['disable', 'prefer', 'require']) === 'require',
    tls,
    options: parameters.takeAll('options'),
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
  };
  parameters.refuseRest();
  return parsed;
}

/** Why a text is no database URL; null if it is one. */
export function databaseUrlProblem(text: string): string | null {
  try {
    parseDatabaseUrl(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * Which setting of TLS is missing; null if none is.
 * @param caFile the file of the CA that is set beside the URL.
 */
export function databaseTlsProblem({ tls, rootCertFile }: DatabaseUrl, caFile?: string): string | null {
  const ca = rootCertFile ?? caFile;
  if (tls === 'disable' && ca !== undefined) return 'needs sslmode=verify-full for the file of the CA';
  if (tls === 'verify-ca' && ca === undefined) return 'needs a file of the CA for sslmode=verify-ca';
  if (rootCertFile === 'system' && tls !== 'verify-full') return 'needs sslmode=verify-full for sslrootcert=system';
  return null;
}

/**
 * The password for a connection in the text of a password file: lines of `host:port:database:user:password`, where `*`
 * stands for any value and `\` escapes the next character. The first line that fits counts.
 */
export function passfilePassword(
  text: string,
  { host, port, database, user }: { host: string; port: number; database: string; user: string },
): string | undefined {
  const wanted = [host.startsWith('/') ? 'localhost' : host, String(port), database, user];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue;
    const fields = [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = '']) => field);
    if (fields.length < 5) continue;
    const fits = wanted.every((value, index) => fields[index] === '*' || unescaped(fields[index] ?? '') === value);
    // The password is the rest of the line, which may contain colons.
    if (fits) return unescaped(line.slice(fields.slice(0, 4).join(':').length + 1));
  }
  return undefined;
}

const unescaped = (field: string): string => field.replace(/\\(.)/g, '$1');

function readHosts(addresses: string, host: string | undefined, port: string | undefined): DatabaseHost[] {
  const inPath = addresses.split(',').map((address) => {
    const [, name = '', digits] = /^(\[[^\]]*\]|[^:]*)(?::([^:]*))?$/.exec(address) ?? fail('has an invalid host');
    return { name: decode(name.replace(/^\[(.*)\]$/, '$1')), port: digits };
  });
  const names = host === undefined ? inPath.map(({ name }) => name) : host.split(',');
  const ports = port === undefined ? inPath.map((one) => one.port ?? '') : port.split(',');
  if (names.length > DATABASE_HOSTS_MAX) fail(`has more than ${DATABASE_HOSTS_MAX} hosts`);
  if (ports.length !== names.length && ports.length !== 1) fail('has another number of ports than of hosts');
  return names.map((name, index) => {
    const digits = (ports.length === 1 ? ports[0] : ports[index]) || DEFAULT_PORT;
    if (!/^\d{1,5}$/.test(digits) || Number(digits) < 1 || Number(digits) > 65_535) fail('has an invalid port');
    if (/\s/.test(name) || (name === '' && names.length > 1)) fail('has an invalid host');
    return { host: name || 'localhost', port: Number(digits) };
  });
}

function readParameters(query: string) {
  const values = new Map<string, string[]>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const [name, value] = split(pair, '=').map(decode);
    if (name === undefined || value === undefined) throw new DatabaseUrlError('has a parameter without a value');
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const takeAll = (name: string): string[] => {
    const all = values.get(name) ?? [];
    values.delete(name);
    return all.filter((value) => value !== '');
  };
  return {
    takeAll,
    take: (name: string): string | undefined => takeAll(name).at(-1),
    refuseRest: (): void => {
      const unknown = [...values.keys()].find((name) => !IGNORED.has(name));
      if (unknown === undefined) return;
      // A password with an unescaped `?` would be read as a parameter, so only names of libpq's shape are shown.
      fail(/^[a-z_]{1,40}$/.test(unknown) ? `has the unknown parameter ${unknown}` : 'has an unknown parameter');
    },
  };
}

function tlsMode(mode: string | undefined): TlsMode {
  return (oneOf('sslmode', mode, TLS_MODES) ?? 'disable') as TlsMode;
}

function oneOf(name: string, value: string | undefined, allowed: readonly string[]): string | undefined {
  if (value !== undefined && !allowed.includes(value)) fail(`needs one of ${allowed.join(', ')} as ${name}`);
  return value;
}

function seconds(name: string, value: string | undefined): number | undefined {
  if (value === undefined || value === '0') return undefined;
  if (!/^\d{1,4}$/.test(value)) fail(`needs a number of seconds as ${name}`);
  return Number(value) * 1000;
}

/** Splits at the first separator. */
function split(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    return fail('has an escape that is not UTF-8');
  }
}

function fail(problem: string): never {
  throw new DatabaseUrlError(problem);
}
