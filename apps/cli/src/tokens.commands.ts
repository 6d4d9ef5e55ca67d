import { PERMISSIONS, TOKEN_TTL_SECONDS, type Permission } from '@callplane/core';
import { parseEnvironment } from '@callplane/runtime';
import { Command } from 'commander';
import { Type } from 'typebox';
import type { Cli } from './cli.js';
import { CliConfig } from './config.js';
import { parseDuration, parseRegion, parseSome } from './options.js';
import { addCommand, print, type OutputOptions } from './output.js';
import { serviceFailure, serviceOf, URL_OPTION } from './service-access.js';

interface TokenOptions extends OutputOptions {
  url?: string;
  key?: string;
  name: string;
  permissions?: Permission[];
  /** In seconds. */
  ttl?: number;
  region?: string;
  whip?: string | true;
}

const ENCODER: Permission[] = ['room:join', 'audio:publish', 'video:publish'];
const GatewayConfig = Type.Pick(CliConfig, ['CALLPLANE_SIGNALING_URL']);

export function tokensCommands(cli: Cli): Command {
  const tokens = new Command('tokens').description('Participant tokens');
  const example = 'rtc tokens create room_01… --whip';
  addCommand(tokens, 'create <room>', 'Issue a token for a new participant, with an API key', example)
    .option(...URL_OPTION)
    .option('--key <key>', 'a secret API key with tokens:create (default: CALLPLANE_API_KEY)')
    .option('--name <name>', 'the name of the participant', 'Encoder')
    .option(
      '--permissions <permissions>',
      `comma-separated (default: ${ENCODER.join(',')})`,
      parseSome('permissions', PERMISSIONS),
    )
    .option('--ttl <duration>', 'how long it lasts, at most 1h (default: 1h)', parseDuration)
    .option('--region <region>', 'of the client: media servers of the nearest region come first', parseRegion)
    .option('--whip [url]', 'print a line for ffmpeg; the URL for encoders (default: /v1/whip of the gateway)')
    .action((roomId: string, options: TokenOptions) =>
      create(cli, options, roomId).catch((error: unknown) => {
        throw serviceFailure(error);
      }),
    );
  return tokens;
}

async function create(cli: Cli, options: TokenOptions, roomId: string): Promise<void> {
  const { url, api } = serviceOf(cli, options);
  const issued = await api.issueToken({
    roomId,
    participantName: options.name,
    permissions: [...new Set<Permission>(['room:join', ...(options.permissions ?? ENCODER)])],
    ttlSeconds: options.ttl ?? TOKEN_TTL_SECONDS.max,
    ...(options.region === undefined ? {} : { region: options.region }),
  });
  if (options.whip === undefined) {
    print(cli, options, issued, issued.token);
    return;
  }
  const gateway = parseEnvironment(GatewayConfig, cli.environment).CALLPLANE_SIGNALING_URL;
  const known = gateway?.replace(/^ws/, 'http').replace(/\/v1\/signaling$/, '') ?? url;
  const whipUrl = typeof options.whip === 'string' ? options.whip : `${known}/v1/whip`;
  const command = ffmpegLine(whipUrl, issued.token);
  print(cli, options, { ...issued, whipUrl, command }, command);
}

/** A test picture and a tone, in the form that needs no file and that every viewer can decode. */
function ffmpegLine(whipUrl: string, token: string): string {
  return [
    'ffmpeg -re -f lavfi -i testsrc=size=1280x720:rate=30 -f lavfi -i sine=frequency=440',
    '-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -bf 0 -g 60 -b:v 2M',
    `-c:a libopus -ar 48000 -ac 2 -f whip -authorization '${token}' '${whipUrl.replaceAll("'", '')}'`,
  ].join(' ');
}
