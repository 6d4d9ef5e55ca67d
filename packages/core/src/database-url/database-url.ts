import { unescaped } from '../text/text.js';

/** A checked database URL. Files that it names are not opened here. */
export interface DatabaseUrl {
  /** A URL for each host, in the order in which a connection tries them. */
  readonly hosts: readonly string[];
  readonly parameters: Readonly<Partial<Record<string, string>>>;
}

/** The message names the parameter, and never contains a part of the URL that may be secret. */
export class DatabaseUrlError extends Error {
  override readonly name = 'DatabaseUrlError';
}

const DATABASE_HOSTS_MAX = 16;
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  target_session_attrs: ['any', 'read-write', 'primary'],
};
const PARAMETERS: ReadonlySet<string> = new Set([
  ...Object.keys(CHOICES),
  'user',
  'password',
  'host',
  'port',
  'application_name',
  'connect_timeout',
  'options',
  'sslrootcert',
  'sslcert',
  'sslkey',
]);
/** Parameters of libpq and Prisma that change nothing here. All other unknown ones are refused. */
const IGNORED: ReadonlySet<string> = new Set([
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
 * Checks `postgresql://user:password@host1:port,host2:port/database?parameters`, and splits it into a URL for each host.
 * @throws DatabaseUrlError
 */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const [, login = '', addresses = '', rest = ''] =
    /^(postgres(?:ql)?:\/\/(?=.)(?:[^/?]*@)?)([^/?@]*)([/?].*)?$/i.exec(text) ?? fail('cannot be parsed');
  if (/[\s#\0]/.test(text)) fail('cannot be parsed');
  if (unescaped(text) === null) fail('has an invalid escape (write % as %25)');
  const list = addresses.split(',');
  if (list.length > DATABASE_HOSTS_MAX) fail(`has more than ${DATABASE_HOSTS_MAX} hosts`);
  if (list.length > 1 && list.includes('')) fail('has an invalid host');
  const parameters: Record<string, string> = {};
  const hosts = list.map((address) => {
    const url = urlOf(`${login}${address.replace(/^(?=:|$)/, 'localhost')}${rest}`);
    for (const [name, value] of [...url.searchParams]) {
      if (IGNORED.has(name)) url.searchParams.delete(name);
      else parameters[name] = checked(name, value);
    }
    return url.href;
  });
  if (parameters['host'] !== undefined && (list.length > 1 || parameters['host'].includes(','))) {
    fail('needs several hosts before the path, not as parameters');
  }
  return { hosts, parameters };
}

function urlOf(text: string): URL {
  try {
    return new URL(text);
  } catch {
    return fail('has an invalid host or port');
  }
}

function checked(name: string, value: string): string {
  // A password with an unescaped `?` would be read as a parameter, so only names of libpq's shape are shown.
  const isShown = /^[a-z_]{1,40}$/.test(name);
  if (!PARAMETERS.has(name)) fail(isShown ? `has the unknown parameter ${name}` : 'has an unknown parameter');
  if (value === '') fail('has a parameter without a value');
  const choices = CHOICES[name];
  if (choices !== undefined && !choices.includes(value)) fail(`needs one of ${choices.join(', ')} as ${name}`);
  if (name === 'connect_timeout' && !/^\d{1,4}$/.test(value)) fail(`needs a number of seconds as ${name}`);
  if (name === 'port' && !/^\d{1,5}$/.test(value)) fail('has an invalid host or port');
  return value;
}

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
export function databaseTlsProblem({ parameters }: DatabaseUrl, caFile?: string): string | null {
  const { sslmode = 'disable', sslrootcert: ca = caFile } = parameters;
  if (sslmode === 'disable' && ca !== undefined) return 'needs sslmode=verify-full for the file of the CA';
  if (sslmode === 'verify-ca' && ca === undefined) return 'needs a file of the CA for sslmode=verify-ca';
  return null;
}

function fail(problem: string): never {
  throw new DatabaseUrlError(problem);
}
