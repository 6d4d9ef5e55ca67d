import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ENDPOINT_HEADER_NAME_CHARACTERS_MAX,
  ENDPOINT_HEADER_VALUE_CHARACTERS_MAX,
  ENDPOINT_HEADERS_MAX,
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  EVENT_WAIT_SECONDS_MAX,
  EXTERNAL_ID_LENGTH_MAX,
  FILTER_PATHS_MAX,
  FILTER_TEXT_CHARACTERS_MAX,
  FILTER_VALUES_MAX,
  JSON_NESTING_MAX,
  MESSAGE_BYTES_MAX,
  MESSAGE_RECIPIENTS_MAX,
  METADATA_BYTES_MAX,
  PARTICIPANT_NAME_LENGTH_MAX,
  REPLAYS_MAX,
  ROLE_LENGTH_MAX,
  RUN_AGE_DAYS_MAX,
  USAGE_DAYS_MAX,
  WAITING_MAX,
  WEBHOOK_URL_CHARACTERS_MAX,
} from '@callplane/core';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { MOVES_MAX } from '../apps/api/src/participants/moves.routes.js';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';

/** Compares docs/limits.md with the settings that it names, and with the limits that callers meet. */

const read = (file: string): string => readFileSync(join(repositoryRoot, file), 'utf8');
const page = read('docs/limits.md');

describe('docs/limits.md', () => {
  test('names only settings of an app or a container', () => {
    const known = read('docs/configuration.md') + read('.env.example');
    const named = [...page.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?:`|_…`)/g)].map(([, name]) => name!);
    const settings = named.filter((name) => !read('packages/core/src/errors/errors.ts').includes(`${name}:`));
    expect(settings.length).toBeGreaterThan(15);
    expect(settings.filter((name) => !known.includes(name))).toEqual([]);
  });

  test.each([
    ['JSON nesting', `| ${JSON_NESTING_MAX} `],
    ['Metadata of a room', `${METADATA_BYTES_MAX / 1024} KiB as a read returns it`],
    ['Name of a room', `1 to ${PARTICIPANT_NAME_LENGTH_MAX} code points`],
    ['`externalId`', `| ${EXTERNAL_ID_LENGTH_MAX}, 500, ${ROLE_LENGTH_MAX}, 32 `],
    [
      '`headers` of an endpoint',
      `| ${ENDPOINT_HEADERS_MAX}; names of ${ENDPOINT_HEADER_NAME_CHARACTERS_MAX}, values of ${ENDPOINT_HEADER_VALUE_CHARACTERS_MAX} `,
    ],
    [
      '`filter` of an endpoint',
      `| ${FILTER_PATHS_MAX} paths of ${FILTER_VALUES_MAX} values, each of ${FILTER_TEXT_CHARACTERS_MAX} `,
    ],
    ['`wait` of `GET /v1/events`', `| ${EVENT_WAIT_SECONDS_MAX} s `],
    ['Recipients and `data` of a message of the server', `${MESSAGE_RECIPIENTS_MAX}; ${MESSAGE_BYTES_MAX / 1024} KiB`],
    ['Moves of one request', `| ${MOVES_MAX} `],
    ['Days of a request for usage', `| ${USAGE_DAYS_MAX} `],
    ['Endpoints of an environment', `| ${ENDPOINTS_PER_ENVIRONMENT_MAX} `],
    ['URL, its host name', `| ${WEBHOOK_URL_CHARACTERS_MAX}, `],
    ['Attempts of a run, explicit', `8, ${REPLAYS_MAX}, ${RUN_AGE_DAYS_MAX} days`],
    ['Frame', `${PROTOCOL_LIMITS.frameBytesMax / 1024} KiB`],
    ['Video and audio tracks that', `${PROTOCOL_LIMITS.videoSectionsMax}, ${PROTOCOL_LIMITS.audioSectionsMax} `],
    ['Session description', `${PROTOCOL_LIMITS.sdpCharsMax.toLocaleString('en')} characters`],
    ['`data` of a message', `${PROTOCOL_LIMITS.messageBytesMax / 1024} KiB`],
    ['Participants in the lobby', `| ${WAITING_MAX} `],
    ['Tracks that one session', `| ${PROTOCOL_LIMITS.tracksMax} `],
  ])('gives the figure of the code for: %s', (beginning, figure) => {
    const rows = page.split('\n').filter((line) => line.startsWith(`| ${beginning}`));
    expect(rows).toEqual([expect.stringContaining(figure)]);
  });
});
