import {
  checkInvariants,
  countEndpointsFailing,
  Database,
  isDatabaseUnavailable,
  listEndpointsFailing,
  listMediaNodes,
  listTurnServers,
  readBacklogs,
  readDatabaseFacts,
  readRecordingFacts,
  readReplication,
  readOldestSnapshots,
  readTableHealth,
} from '@callplane/db';
import { pendingMigrations } from '@callplane/migrations';
import { openStore } from '@callplane/store';
import type { Command } from 'commander';
import { configOf, directConnection, targetOf, type Cli } from '../cli.js';
import type { CliConfig } from '../config.js';
import { CommandError, failureOf } from '../failure.js';
import { parseCount } from '../options.js';
import { addCommand, printList } from '../output.js';
import { URL_OPTION } from '../service-access.js';
import { failure, type Finding } from './finding.js';
import { testFromHere, type FromHereOptions } from './from-here.js';
import {
  checkDatabase,
  checkInvariant,
  checkMasterKeys,
  checkReplication,
  checkSchema,
  checkSnapshots,
  checkTables,
} from './postgres.js';
import { checkRecordings } from './recordings.js';
import { redisFindings } from './redis.js';
import { checkEndpoints, checkMedia, checkQueue, checkRelays, checkSignaling, checkWebhookNetworks } from './work.js';

/** Enough for the latest hours of a busy deployment, in about a second. */
const ROWS_DEFAULT = 1000;
const ENDPOINTS_NAMED = 5;
const parseRows = parseCount('a number of rows', 1, 10_000);

interface DoctorOptions extends FromHereOptions {
  deep?: boolean;
  fromHere?: boolean;
  rows: number;
}

const MARKS = { ok: 'ok', warning: 'WARNING', failure: 'FAILURE' } as const;

/**
 * Adds `rtc doctor`, which checks every dependency of Callplane and says how to fix problems. Exit code 1 if a check
 * fails.
 */
export function addDoctorCommand(rtc: Command, cli: Cli): void {
  const description = 'Check settings, PostgreSQL, schema, clock, Redis, queues, media and relays, and give advice';
  addCommand(rtc, 'doctor', description, 'rtc doctor')
    .option('--deep', 'also check the invariants of docs/guarantees.md on the newest rows; reads only')
    .option('--rows <count>', 'how many rows each invariant looks at, 1 to 10000', parseRows, ROWS_DEFAULT)
    .option('--from-here', 'instead test the line from this machine to the service, as a client has it')
    .option(URL_OPTION[0], `with --from-here: ${URL_OPTION[1]}`)
    .option('--key <key>', 'with --from-here: a secret API key with tokens:create (default: CALLPLANE_API_KEY)')
    .action(async (options: DoctorOptions) => {
      if (options.fromHere === true) return testFromHere(cli, options);
      const config = configOf(cli);
      const database = await examineDatabase(cli, config, options.deep === true ? options.rows : 0);
      const findings = [...database.findings, ...(await redisFindings(config, database.backlogs, database.running))];
      printList(cli, options, findings, {
        STATUS: ({ status }) => MARKS[status],
        CHECK: ({ check }) => check,
        FINDING: ({ detail, advice }) => (advice === undefined ? detail : `${detail}. ${advice}`),
      });
      const countOf = (wanted: Finding['status']) => findings.filter(({ status }) => status === wanted).length;
      const warnings = countOf('warning');
      if (options.json !== true)
        cli.write(`${countOf('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}\n`);
      const failed = countOf('failure');
      if (failed > 0) throw new CommandError(`${failed} of ${findings.length} checks failed.`);
    });
}

/**
 * @param rows how many rows each invariant looks at; 0: none is checked.
 * @returns the findings, the work that waits in PostgreSQL, and the running processes; null if they could not be read
 */
async function examineDatabase(cli: Cli, config: CliConfig, rows: number) {
  const database = new Database({ ...directConnection(config), poolMax: 1 });
  try {
    // Open the connection before measuring the clock, so that connecting does not distort the result.
    await database.ping();
    const schema = checkSchema(await pendingMigrations(targetOf(config)));
    // Stop here: the other checks read tables that the schema lacks.
    if (schema.status === 'failure') return { findings: [schema], backlogs: null, running: null };
    const startedAtMs = cli.clock.now().getTime();
    const facts = await readDatabaseFacts(database.sql);
    // Imported on demand: loading this package takes longer than most commands.
    const { isOutdated } = await import('@callplane/media');
    const differenceMs = (startedAtMs + cli.clock.now().getTime()) / 2 - facts.now.getTime();
    const configured = config.ENCRYPTION_KEYS?.map((entry) => entry.split(':')[0] ?? '') ?? null;
    const backlogs = await readBacklogs(database.sql);
    const findings = [
      ...checkDatabase(facts, differenceMs),
      checkReplication(await readReplication(database.sql)),
      schema,
      checkSnapshots(await readOldestSnapshots(database.sql)),
      checkTables(await readTableHealth(database.sql)),
      checkMasterKeys(facts.masterKeyIds, configured),
      ...backlogs.map((backlog) => checkQueue(backlog, facts.running)),
      checkSignaling(facts.signalingInstances),
      ...checkMedia(await listMediaNodes(database.sql), isOutdated),
      ...checkRelays(await listTurnServers(database.prisma, facts.now)),
      ...checkEndpoints(
        await countEndpointsFailing(database.sql),
        await listEndpointsFailing(database.sql, ENDPOINTS_NAMED),
      ),
      ...(await checkRecordings(
        await openStore(config),
        await readRecordingFacts(database.sql),
        facts.running.some(({ app }) => app === 'recorder'),
      )),
      ...checkWebhookNetworks(config.WEBHOOK_ALLOWED_CIDRS, facts.projects),
      ...(rows === 0 ? [] : (await checkInvariants(database, rows)).map(checkInvariant)),
    ];
    return { findings, backlogs, running: facts.running };
  } catch (error) {
    const advice = isDatabaseUnavailable(error)
      ? 'Check that PostgreSQL runs and that DATABASE_URL is right.'
      : 'Check the log of PostgreSQL.';
    return { findings: [failure('postgres', failureOf(error).line, advice)], backlogs: null, running: null };
  } finally {
    await database.close();
  }
}
