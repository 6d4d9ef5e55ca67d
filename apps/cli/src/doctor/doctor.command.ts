import {
  Database,
  isDatabaseUnavailable,
  listMediaNodes,
  pendingMigrations,
  readBacklogs,
  readDatabaseFacts,
} from '@callplane/db';
import type { Command } from 'commander';
import { configOf, targetOf, type Cli } from '../cli.js';
import type { CliConfig } from '../config.js';
import { CommandError, failureOf } from '../failure.js';
import { addCommand, printList, type OutputOptions } from '../output.js';
import {
  failure,
  judgeDatabase,
  judgeMasterKeys,
  judgeMedia,
  judgeQueue,
  judgeRedis,
  judgeSchema,
  judgeSignaling,
  type Finding,
} from './findings.js';

const MARKS = { ok: 'ok', warning: 'WARNING', failure: 'FAILURE' } as const;

/** `rtc doctor`: looks at everything that Callplane leans on and says what to do; exit code 1 when something fails. */
export function addDoctorCommand(rtc: Command, cli: Cli): void {
  const description = 'Check settings, PostgreSQL, schema, clock, Redis, queues and media, and say what to do';
  addCommand(rtc, 'doctor', description, 'rtc doctor').action(async (options: OutputOptions) => {
    const config = configOf(cli);
    const findings = [...(await examineDatabase(cli, config)), ...(await examineRedis(config))];
    printList(cli, options, findings, ({ check, status, detail, advice }) => [
      MARKS[status],
      check,
      advice === undefined ? detail : `${detail}. ${advice}`,
    ]);
    const failed = findings.filter(({ status }) => status === 'failure').length;
    if (failed > 0) throw new CommandError(`${failed} of ${findings.length} checks failed.`);
  });
}

async function examineDatabase(cli: Cli, config: CliConfig): Promise<Finding[]> {
  const database = new Database({ url: config.DATABASE_URL, poolMax: 1 });
  try {
    // The first question opens the connection; the second one measures the clock.
    await database.ping();
    const schema = judgeSchema(await pendingMigrations(targetOf(config)));
    // Without its tables there is nothing more to ask.
    if (schema.status === 'failure') return [schema];
    const asked = cli.clock.now().getTime();
    const facts = await readDatabaseFacts(database.prisma);
    const differenceMs = (asked + cli.clock.now().getTime()) / 2 - facts.now.getTime();
    const configured = config.ENCRYPTION_KEYS?.map((entry) => entry.split(':')[0] ?? '') ?? null;
    const [backlogs, depths] = await Promise.all([readBacklogs(database.prisma), depthsOf(config)]);
    return [
      ...judgeDatabase(facts, differenceMs),
      schema,
      judgeMasterKeys(facts.masterKeyIds, configured),
      ...backlogs.map((backlog) => judgeQueue(backlog, depths)),
      judgeSignaling(facts.signalingInstances),
      ...judgeMedia(await listMediaNodes(database.hot)),
    ];
  } catch (error) {
    const advice = isDatabaseUnavailable(error)
      ? 'Check that PostgreSQL runs and that DATABASE_URL leads to it; nothing works without it.'
      : 'Look at its log.';
    return [failure('postgres', failureOf(error).line, advice)];
  } finally {
    await database.close();
  }
}

async function examineRedis({ REDIS_URL }: CliConfig): Promise<Finding[]> {
  if (REDIS_URL === undefined) {
    return [{ check: 'redis', status: 'warning', detail: 'not checked', advice: 'Set REDIS_URL to have it checked.' }];
  }
  const { readRedisFacts } = await import('@callplane/queue');
  try {
    return judgeRedis(await readRedisFacts(REDIS_URL));
  } catch {
    const advice = 'Check that Redis runs and that REDIS_URL is right. Until then everything is late by one sweep.';
    return [failure('redis', 'cannot be reached', advice)];
  }
}

async function depthsOf({ REDIS_URL }: CliConfig) {
  if (REDIS_URL === undefined) return null;
  const { readQueueDepths } = await import('@callplane/queue');
  return readQueueDepths(REDIS_URL).catch(() => null);
}
