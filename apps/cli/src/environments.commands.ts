import { DAY_MS, dayOf, formatTimestamp, newId, presentUsageDay } from '@callplane/core';
import { createEnvironment, listEnvironments, readUsage, tenantOfEnvironment, type TypedSql } from '@callplane/db';
import { Command } from 'commander';
import { parseDays, parseName, USAGE_DAYS_DEFAULT } from './arguments.js';
import { withDatabase, type Cli } from './cli.js';
import { environmentOf, projectOf } from './defaults.js';
import { UsageError } from './failure.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

export function environmentsCommands(cli: Cli): Command {
  const environments = new Command('environments').description('Environments: every room and key belongs to one');
  const example = 'rtc environments create --project proj_01… --name production';
  addCommand(environments, 'create', 'Create an environment of a project', example)
    .option('--project <id>', 'id of the project (proj_…); by default, the only one')
    .requiredOption('--name <name>', 'name of the environment, unique in its project', parseName)
    .action((options: OutputOptions & { project?: string; name: string }) =>
      withDatabase(cli, async ({ prisma, sql }) => {
        const projectId = await projectOf(sql, options.project);
        const environment = {
          id: newId('environment'),
          projectId,
          name: options.name,
          createdAt: cli.clock.now(),
        };
        switch (await createEnvironment(prisma, environment)) {
          case 'project_not_found':
            throw unknownProject(projectId);
          case 'name_taken':
            throw new UsageError(
              `The project already has an environment ${quoted(options.name)}. Choose another --name.`,
            );
          case 'created':
            print(cli, options, environment, `Environment ${environment.id} ${quoted(environment.name)}`);
        }
      }),
    );
  addCommand(environments, 'list', 'List the environments of a project', 'rtc environments list --project proj_01…')
    .option('--project <id>', 'id of the project (proj_…); by default, the only one')
    .action((options: OutputOptions & { project?: string }) =>
      withDatabase(cli, async ({ sql }) => {
        const projectId = await projectOf(sql, options.project);
        const rows = await listEnvironments(sql, projectId);
        if (rows === null) throw unknownProject(projectId);
        printList(cli, options, rows, [
          column('ENVIRONMENT', (row) => row.id),
          column('CREATED', (row) => formatTimestamp(row.createdAt)),
          column('NAME', (row) => quoted(row.name)),
        ]);
      }),
    );
  addCommand(
    environments,
    'usage [environment]',
    'Show the usage by UTC day',
    'rtc environments usage env_01… --days 7',
  )
    .option('--days <count>', 'number of days up to today, 1 to 92', parseDays, USAGE_DAYS_DEFAULT)
    .action((given: string | undefined, options: OutputOptions & { days: number }) =>
      withDatabase(cli, async ({ sql }) =>
        showUsage(cli, sql, await environmentOf(sql, given, 'the environment'), options),
      ),
    );
  return environments;
}

async function showUsage(
  cli: Cli,
  sql: TypedSql,
  environmentId: string,
  options: OutputOptions & { days: number },
): Promise<void> {
  const tenant = await tenantOfEnvironment(sql, environmentId);
  if (tenant === null) {
    throw new UsageError(
      `Environment ${quoted(environmentId)} not found. "rtc environments list --project <id>" lists environments.`,
    );
  }
  const now = cli.clock.now();
  const last = dayOf(now);
  const days = await readUsage(sql, tenant, new Date(last.getTime() - (options.days - 1) * DAY_MS), last, now);
  const relayed = (share: number | null) => (share === null ? '-' : `${Math.round(share * 100)} %`);
  printList(cli, options, days.map(presentUsageDay), [
    column('DAY', ({ day }) => day),
    column(
      'ROOMS',
      ({ rooms }) => String(rooms),
      ({ rooms }) => `${rooms} rooms`,
    ),
    column(
      'PARTICIPANT MINUTES',
      (day) => String(day.participantMinutes),
      (day) => `${day.participantMinutes} participant minutes`,
    ),
    column(
      'PEAK',
      (day) => String(day.peakParticipants),
      (day) => `peak ${day.peakParticipants}`,
    ),
    column(
      'RELAYED',
      (day) => relayed(day.relayShare),
      (day) => `relayed ${relayed(day.relayShare)}`,
    ),
    column(
      'DELIVERIES',
      (day) => String(day.deliveries),
      (day) => `${day.deliveries} deliveries`,
    ),
  ]);
}

function unknownProject(id: string): UsageError {
  return new UsageError(`Project ${quoted(id)} not found. "rtc projects list" lists projects.`);
}
