import { parseApiKey, parseUrl } from '@callplane/core';
import { parseEnvironment } from '@callplane/runtime';
import { Type } from 'typebox';
import type { Cli } from './cli.js';
import { CliConfig } from './config.js';
import { UsageError } from './failure.js';
import { quoted } from './output.js';

/** The API of the local start. */
const URL_DEFAULT = 'http://localhost:8080';
const AccessConfig = Type.Pick(CliConfig, ['CALLPLANE_URL', 'CALLPLANE_API_KEY']);

export interface ServiceAccess {
  /** Without a slash or `/v1` at its end. */
  url: string;
  /** A secret API key. */
  key: string;
}

/** The service and the key of a command that needs nothing else, from its options or the environment. */
export function serviceAccess(cli: Cli, options: { url?: string; key?: string }): ServiceAccess {
  const config = parseEnvironment(AccessConfig, cli.environment);
  const key = options.key ?? config.CALLPLANE_API_KEY;
  if (key === undefined) throw new UsageError('Set CALLPLANE_API_KEY, or give an API key with --key.');
  if (parseApiKey(key) !== 'secret') throw new UsageError('Give a secret API key, rtc_sk_….');
  return { url: baseUrl(options.url ?? config.CALLPLANE_URL ?? URL_DEFAULT), key };
}

function baseUrl(text: string): string {
  if (parseUrl(text) === null || !/^https?:/.test(text)) {
    throw new UsageError(`Give the URL of the service, such as https://calls.example.com, not ${quoted(text)}.`);
  }
  return text.replace(/\/+$/, '').replace(/\/v1$/, '');
}
