import { keyProblem, parseApiKey, parseUrl } from '@callplane/core';
import { parseEnvironment } from '@callplane/runtime';
import { createClient, isCallplaneError, type Callplane, type ClientOptions } from '@callplane/server';
import { Type } from 'typebox';
import type { Cli } from './cli.js';
import { CliConfig } from './config.js';
import { CommandError, UsageError } from './failure.js';
import { quoted } from './terminal.js';

/** The API of the local start. */
const URL_DEFAULT = 'http://localhost:8080';
export const URL_OPTION = ['--url <url>', `the service (default: CALLPLANE_URL, or ${URL_DEFAULT})`] as const;
const AccessConfig = Type.Pick(CliConfig, ['CALLPLANE_URL', 'CALLPLANE_API_KEY', 'CALLPLANE_SIGNALING_URL']);

/** The client of a command that needs nothing but a service and a key, from its options or the environment. */
export function serviceOf(
  cli: Cli,
  options: { url?: string; key?: string },
  more: Partial<ClientOptions> = {},
): { url: string; signalingUrl: string; api: Callplane } {
  const config = parseEnvironment(AccessConfig, cli.environment);
  const apiKey = options.key ?? config.CALLPLANE_API_KEY;
  if (apiKey === undefined) throw new UsageError('Set CALLPLANE_API_KEY, or give an API key with --key.');
  const problem = keyProblem(apiKey);
  if (problem !== null) throw new UsageError(`The API key is not well-formed: ${problem}.`);
  if (parseApiKey(apiKey) !== 'secret')
    throw new UsageError('Give a secret API key, rtc_sk_…, instead of a publishable one.');
  const url = serviceUrl(options.url ?? config.CALLPLANE_URL);
  const signalingUrl = config.CALLPLANE_SIGNALING_URL ?? `${url.replace(/^http/, 'ws')}/v1/signaling`;
  return { url, signalingUrl, api: createClient({ baseUrl: url, apiKey, retriesMax: 0, ...more }) };
}

/** The URL of the service, without a slash or `/v1` at its end. @throws UsageError */
export function serviceUrl(text = URL_DEFAULT): string {
  const url = parseUrl(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new UsageError(
      `Give the URL of the service as --url, such as https://calls.example.com, not ${quoted(text)}.`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/**
 * The error of a command whose call of the service has failed.
 * @param repetition how to repeat a call whose effect is unknown
 */
export function serviceFailure(error: unknown, repetition = ''): unknown {
  if (!isCallplaneError(error)) return error;
  const { code, details, requestId, status } = error;
  const message = error.message.replace(/\.?$/, '.');
  if (status === null || code === 'INVALID_RESPONSE') return new CommandError(`${message}${repetition}`);
  const facts = `(HTTP ${status}, request ${requestId})`;
  if (status === 401) return new UsageError(`${message} Give a valid API key with --key ${facts}.`);
  // The message of an invalid request is its first detail.
  const more = details.map((detail) => `${detail.path} ${detail.message}`).filter((text) => !message.includes(text));
  return new CommandError(`${[`${code}: ${error.message}`, ...more].join('; ')} ${facts}`);
}
