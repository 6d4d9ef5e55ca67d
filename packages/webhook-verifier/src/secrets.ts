import { types } from 'node:util';

/** By version is best: the header of the version then chooses, and a rotation needs no guessing. */
export type SigningSecrets =
  string | readonly string[] | Readonly<Record<string, string>> | ReadonlyMap<string | number, string>;

/** One or several to try, or those by version. */
export type CheckedSecrets = readonly string[] | ReadonlyMap<string, string>;

/** @throws TypeError for a secret that is none. An empty one would let anybody sign. */
export function checkedSecrets(secrets: unknown): CheckedSecrets {
  if (typeof secrets === 'string') return [checkedSecret(secrets)];
  if (Array.isArray(secrets) && secrets.length > 0) return secrets.map(checkedSecret);
  if (typeof secrets !== 'object' || secrets === null || Array.isArray(secrets))
    throw new TypeError('`secrets` holds no signing secret.');
  const byVersion = types.isMap(secrets) ? [...secrets] : Object.entries(secrets);
  return new Map(byVersion.map(([version, secret]) => [String(version), checkedSecret(secret)]));
}

export function secretsOfVersion(secrets: CheckedSecrets, version: number): readonly string[] {
  if (!(secrets instanceof Map)) return secrets as readonly string[];
  const secret = (secrets as ReadonlyMap<string, string>).get(String(version));
  return secret === undefined ? [] : [secret];
}

function checkedSecret(secret: unknown): string {
  if (typeof secret !== 'string' || !/^whsec_./.test(secret)) {
    throw new TypeError('A signing secret is a text that begins with whsec_, which belongs to it.');
  }
  return secret;
}
