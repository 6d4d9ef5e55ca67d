import { DAY_MS, dayOf, formatTimestamp, newId, presentUsageDay } from '@callplane/core';
import { createEnvironment, listEnvironments, readUsage, tenantOfEnvironment, type Database } from '@callplane/db';
import { Command } from 'commander';
import { parseDays, parseName, USAGE_DAYS_DEFAULT } from './arguments.js';
import { withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addCommand, print, printList, quoted, type OutputOptions } from './output.js';

export function environmentsCommands(cli: Cli): Command {
  const environments = new Command('environments').description('Environments: every room and key belongs to one');
  const example = 'rtc environments create --project proj_01… --name production';
  addCommand(environments, 'create', 'Create an environment of a project', example)
    .requiredOption('--project <id>', 'id of the project (proj_…)')
    .requiredOption('--name <name>', 'name of the environment, unique in its project', parseName)
    .action((options: OutputOptions & { project: string; name: string }) =>
      withDatabase(cli, async ({ prisma }) => {
        const environment = {
          id: newId('environment'),
          projectId: options.project,
          name: options.name,
          createdAt: cli.clock.now(),
        };
        switch (await createEnvironment(prisma, environment)) {
          case 'project_not_found':
            throw unknownProject(options.project);
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
    .requiredOption('--project <id>', 'id of the project (proj_…)')
    .action((options: OutputOptions & { project: string }) =>
      withDatabase(cli, async ({ prisma }) => {
        const rows = await listEnvironments(prisma, options.project);
        if (rows === null) throw unknownProject(options.project);
        printList(cli, options, rows, (row) => [row.id, formatTimestamp(row.createdAt), quoted(row.name)]);
      }),
    );
  addCommand(
    environments,
    'usage <environment>',
    'Show the usage by UTC day',
    'rtc environments usage env_01… --days 7',
  )
    .option('--days <count>', 'number of days up to today, 1 to 92', parseDays, USAGE_DAYS_DEFAULT)
    .action((environmentId: string, options: OutputOptions & { days: number }) =>
      withDatabase(cli, ({ prisma, sql }) => showUsage(cli, { prisma, sql }, environmentId, options)),
    );
  return environments;
}

async function showUsage(
  cli: Cli,
  { prisma, sql }: Pick<Database, 'prisma' | 'sql'>,
  environmentId: string,
  options: OutputOptions & { days: number },
): Promise<void> {
  const tenant = await tenantOfEnvironment(prisma, environmentId);
  if (tenant === null) {
    throw new UsageError(
      `Environment ${quoted(environmentId)} not found. "rtc environments list --project <id>" lists environments.`,
    );
  }
  const now = cli.clock.now();
  const last = dayOf(now);
  const days = await readUsage(sql, tenant, new Date(last.getTime() - (options.days - 1) * DAY_MS), last, now);
  printList(cli, options, days.map(presentUsageDay), (day) => [
    day.day,
    `${day.rooms} rooms`,
    `${day.participantMinutes} participant minutes`,
    `peak ${day.peakParticipants}`,
    day.relayShare === null ? 'relayed -' : `relayed ${Math.round(day.relayShare * 100)} %`,
    `${day.deliveries} deliveries`,
  ]);
}

function unknownProject(id: string): UsageError {
  return new UsageError(`Project ${quoted(id)} not found. "rtc projects list" lists projects.`);
}
