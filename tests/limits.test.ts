import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ADDRESSES_TRIED_PER_FAMILY_MAX,
  CONCURRENT_MAX,
  CONSOLE_SESSIONS_MAX,
  DATABASE_HOSTS_MAX,
  ENDPOINTS_PER_ENVIRONMENT_MAX,
  ERROR_DETAILS_MAX,
  ERROR_MESSAGE_CHARACTERS_MAX,
  ERROR_PATH_CHARACTERS_MAX,
  EVENT_READ_EVERY_MS,
  EVENT_WAIT_SECONDS_MAX,
  EVENT_WAITS_MAX,
  EVENT_WAITS_PER_ENVIRONMENT_MAX,
  EXTERNAL_ID_LENGTH_MAX,
  JSON_NESTING_MAX,
  MESSAGE_BYTES_MAX,
  MESSAGE_RECIPIENTS_MAX,
  PAST_TRACKS_MAX,
  RECOVERIES_PENDING_MAX,
  RECOVERY_IN_FLIGHT_MAX,
  RECOVERY_PACE,
  METADATA_BYTES_MAX,
  PARTICIPANT_NAME_LENGTH_MAX,
  PER_SECOND_MAX,
  REPLAYS_MAX,
  RUN_AGE_DAYS_MAX,
  STREAM_UNREAD_BYTES_MAX,
  STREAMS_MAX,
  STREAMS_PER_ENVIRONMENT_MAX,
  USAGE_DAYS_MAX,
  WEBHOOK_URL_CHARACTERS_MAX,
} from '@callplane/core';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { GUIDE_BYTES_MAX } from '../apps/api/src/openapi/guides.js';
import { HEAVY_READS_AT_ONCE, HEAVY_READS_WAITING_MAX } from '../apps/api/src/statements/heavy-reads.js';
import {
  REQUESTS_PER_STATEMENT_MAX,
  STATEMENTS_AT_ONCE,
  WAIT_MS_MAX,
  WAITING_MAX,
} from '../apps/api/src/statements/shared-statements.js';
import {
  UNREAD_BYTES_MAX,
  UNREAD_BYTES_PER_ENVIRONMENT_MAX,
  UNREAD_BYTES_SHARED,
} from '../apps/api/src/http/unread-answers.js';
import { LISTS_WAITING_MAX } from '../apps/api/src/statements/list-turns.js';
import { QUEUED_CHARS_OF_ALL } from '../apps/signaling/src/connections/inbox.js';
import { UNSENT_BYTES_OF_ALL } from '../apps/signaling/src/connections/outbox.js';
import { CONSOLE_LIMITS } from '../apps/console/src/limits.js';
import { LOCK_WAITS } from '../packages/migrations/src/migrate.js';
import { CLIENT_LIMITS } from '../packages/server-js/src/limits.js';
import { REDIS_HOSTS_MAX } from '@callplane/queue/redis-target';
import { repositoryRoot } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';

const MIB = 1024 * 1024;

/** Compares docs/limits.md with the settings and constants that it describes. */

const read = (file: string): string => readFileSync(join(repositoryRoot, file), 'utf8');
const page = read('docs/limits.md');
const rows = page.split('\n').filter((line) => line.startsWith('|'));

/** The row whose first cell begins with this text. */
function row(beginning: string): string {
  const found = rows.filter((line) => line.slice(2).startsWith(beginning));
  expect([beginning, found.length]).toEqual([beginning, 1]);
  return found[0]!;
}

describe('docs/limits.md', () => {
  test('names only settings of an app or a container', () => {
    const known = read('docs/configuration.md') + read('.env.example');
    const named = [...page.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?:`|_…`)/g)].map(([, name]) => name!);
    const settings = named.filter((name) => !read('packages/core/src/errors/errors.ts').includes(`${name}:`));
    expect(settings.length).toBeGreaterThan(15);
    expect(settings.filter((name) => !known.includes(name))).toEqual([]);
  });

  test('names only files that exist', () => {
    const files = [...page.matchAll(/`((?:apps|packages|infra)\/[^`]+)`/g)].map(([, file]) => file!);
    expect(files.length).toBeGreaterThan(8);
    expect(files.filter((file) => !existsSync(join(repositoryRoot, file)))).toEqual([]);
  });

  test.each([
    ['`wait` of `GET /v1/events`', `| ${EVENT_WAIT_SECONDS_MAX} s `],
    [
      'Requests that wait for events',
      `${EVENT_WAITS_PER_ENVIRONMENT_MAX} of an environment, ${EVENT_WAITS_MAX} in all`,
    ],
    ['Requests that share a statement', `| ${REQUESTS_PER_STATEMENT_MAX}; ${STATEMENTS_AT_ONCE} statements of a kind`],
    [
      'Requests of a kind that wait for their statement',
      `${WAITING_MAX.ofTenant.toLocaleString('en')} of an environment, ${WAITING_MAX.all.toLocaleString('en')} in all, for ${WAIT_MS_MAX / 1000} s`,
    ],
    ['Reads of `/v1/overview`', `1 of an environment, ${HEAVY_READS_AT_ONCE} of a process`],
    ['The same that wait', `${HEAVY_READS_WAITING_MAX} different ones of an environment, for ${WAIT_MS_MAX / 1000} s`],
    ['Lists of an environment that read at once', 'half of the connections for reads; of all environments all but one'],
    [
      'Lists that wait for their turn',
      `${LISTS_WAITING_MAX.toLocaleString('en')} of an environment, for ${WAIT_MS_MAX / 1000} s`,
    ],
    [
      'Answers of an environment that an API process holds unread',
      `${UNREAD_BYTES_PER_ENVIRONMENT_MAX / MIB} MiB; its share while all have ${UNREAD_BYTES_SHARED / MIB} MiB; ${UNREAD_BYTES_MAX / MIB} MiB in all`,
    ],
    ['Streams of changes at one', `${STREAMS_PER_ENVIRONMENT_MAX} of an environment, ${STREAMS_MAX} in all`],
    ['Bytes of a stream that its client', `${STREAM_UNREAD_BYTES_MAX / 1024} KiB`],
    ['Open console sessions and links', `| ${CONSOLE_SESSIONS_MAX} `],
    ['Unread data of all connections', `${UNSENT_BYTES_OF_ALL / MIB} MiB`],
    ['Waiting messages of all connections', `${QUEUED_CHARS_OF_ALL / MIB} MiB`],
    ['Recoveries of an endpoint that are not', `| ${RECOVERIES_PENDING_MAX} `],
    ['Reads for all of them', `every ${EVENT_READ_EVERY_MS} ms`],
    ['Hosts in `DATABASE_URL`', `| ${DATABASE_HOSTS_MAX} `],
    ['JSON nesting', `| ${JSON_NESTING_MAX} `],
    ['Metadata of a room', `${METADATA_BYTES_MAX / 1024} KiB as a read returns it`],
    ['Metadata of a room', `${PROTOCOL_LIMITS.metadataBytesMax / 1024} KiB as a read returns it`],
    ['Name of a room', `1 to ${PARTICIPANT_NAME_LENGTH_MAX} code points`],
    ['`externalId`', `| ${EXTERNAL_ID_LENGTH_MAX}, 500 `],
    [
      'Details of an error',
      `${ERROR_DETAILS_MAX}; ${ERROR_PATH_CHARACTERS_MAX} of its path, ${ERROR_MESSAGE_CHARACTERS_MAX} of its message`,
    ],
    ['Recipients and `data` of a message of the server', `${MESSAGE_RECIPIENTS_MAX}; ${MESSAGE_BYTES_MAX / 1024} KiB`],
    ['Days of a request for usage', `| ${USAGE_DAYS_MAX} `],
    ['Guide of the documentation page', `| ${GUIDE_BYTES_MAX / 1024} KiB `],
    ['Ended tracks that a session shows', `| ${PAST_TRACKS_MAX} `],
    ['First frame', `${PROTOCOL_LIMITS.firstFrameBytesMax / 1024} KiB`],
    ['Frame', `${PROTOCOL_LIMITS.frameBytesMax / 1024} KiB`],
    ['Video and audio tracks that', `${PROTOCOL_LIMITS.videoSectionsMax}, ${PROTOCOL_LIMITS.audioSectionsMax} `],
    ['Media sections of', `${PROTOCOL_LIMITS.sectionsMax} `],
    ['Speakers in one message', `${PROTOCOL_LIMITS.speakersMax}, 2 a second`],
    ['Session description', `${PROTOCOL_LIMITS.sdpCharsMax.toLocaleString('en')} characters`],
    ['`data` of a message', `${PROTOCOL_LIMITS.messageBytesMax / 1024} KiB`],
    ['Recipients of a message', `${PROTOCOL_LIMITS.recipientsMax}, ${PROTOCOL_LIMITS.subscriptionsMax}`],
    [
      'Page of a roster',
      `${PROTOCOL_LIMITS.rosterPageMax} participants, ${PROTOCOL_LIMITS.rosterPageBytesMax / 1024} KiB`,
    ],
    ['Participants in one `show`', `${PROTOCOL_LIMITS.shownMax}, ${PROTOCOL_LIMITS.publishersShownMax}`],
    ['Tracks that one session', `| ${PROTOCOL_LIMITS.tracksMax} `],
    ['Endpoints of an environment', `| ${ENDPOINTS_PER_ENVIRONMENT_MAX} `],
    ['`maxPerSecond` of an endpoint', `1 to ${PER_SECOND_MAX}, 1 to ${CONCURRENT_MAX};`],
    ['URL, its host name', `| ${WEBHOOK_URL_CHARACTERS_MAX}, `],
    ['Addresses that one attempt', `${ADDRESSES_TRIED_PER_FAMILY_MAX} of each family`],
    ['Attempts of a call', `at most ${CLIENT_LIMITS.retriesMax} `],
    ['Pause before a repetition', `up to ${CLIENT_LIMITS.retryPauseSecondsMax} s`],
    ['Body of a response', `${CLIENT_LIMITS.responseBytesMax / 1024 / 1024} MiB`],
    ['Time for which the API waits', `| ${CLIENT_LIMITS.waitSecondsMax} s`],
    ['Events of a batch', `| ${CLIENT_LIMITS.eventBatchMax} `],
    ['Time a consumer waits', `| ${CLIENT_LIMITS.eventWaitSecondsMax} s `],
    ['Failures of a consumer', `at most ${CLIENT_LIMITS.consumerFailuresMax} `],
    ['Pause of a consumer', `${CLIENT_LIMITS.consumerPauseSecondsMax} s, `],
    ['Rows of a list', `${CONSOLE_LIMITS.pageSize} a page, ${CONSOLE_LIMITS.pagesMax} pages`],
    ['Pages of a list that read', `| ${CONSOLE_LIMITS.rereadPagesMax} `],
    ['Sessions behind the list of participants', `| ${CONSOLE_LIMITS.sessionsMax.toLocaleString('en')} `],
    ['Time of a request of the console', `| ${CONSOLE_LIMITS.requestTimeoutMs / 1000} s`],
    ['Repetitions of a failed read', `| ${CONSOLE_LIMITS.retriesMax} `],
    ['Answers in the cache of the console', `| ${CONSOLE_LIMITS.cacheMs / 60_000} min`],
    ['Notices on a page', `| ${CONSOLE_LIMITS.toastsMax} `],
    ['Pause before the console', ` to ${CONSOLE_LIMITS.streamPauseMaxMs / 1000} s`],
    ['TURN test of a server', `| ${CONSOLE_LIMITS.turnTestMs / 1000} s`],
    [
      'Deliveries that a recovery sends',
      `${RECOVERY_PACE.batchMax}/s; ${RECOVERY_PACE.batchMaxWhileBusy}/s while ${RECOVERY_PACE.dueMax} of the endpoint`,
    ],
    ['Deliveries in flight that a recovery waits for', `| ${RECOVERY_IN_FLIGHT_MAX} `],
    [
      'Wait of a migration for a lock',
      `${LOCK_WAITS.timeoutMs / 1000} s, again after ${LOCK_WAITS.pauseMs / 1000} s, for ${LOCK_WAITS.waitMsMax / 60_000} minutes`,
    ],
    ['Hosts in `REDIS_URL`', `| ${REDIS_HOSTS_MAX} `],
    ['Attempts of a run, explicit', `8, ${REPLAYS_MAX}, ${RUN_AGE_DAYS_MAX} days`],
  ])('gives the figure of the code for: %s', (beginning, figure) => {
    expect(row(beginning)).toContain(figure);
  });
});
