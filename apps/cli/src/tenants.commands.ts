import { API_KEY_TYPES, DAY_MS, dayOf, newId, presentUsageDay, type Tenant } from '@callplane/core';
import {
  createEnvironment,
  createProject,
  listEnvironments,
  listProjects,
  readUsage,
  type Database,
} from '@callplane/db';
import { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { UsageError } from './failure.js';
import { insertKey } from './keys.commands.js';
import { environmentOf, notFound, parseDays, parseName, PROJECT_OPTION, projectOf } from './options.js';
import { addCommand, addList, print, printList, type OutputOptions } from './output.js';
import { quoted } from './terminal.js';

const USAGE_DAYS_DEFAULT = 30;

export function projectsCommands(cli: Cli): Command {
  const projects = new Command('projects').description('Projects: each groups environments');
  addCommand(projects, 'create', 'Create a project', 'rtc projects create --name "My app"')
    .requiredOption('--name <name>', 'name of the project', parseName)
    .option('--environment <name>', 'also create an environment, and a secret and a publishable key of it', parseName)
    .action((options: OutputOptions & { name: string; environment?: string }) =>
      withDatabase(cli, async ({ prisma }) => {
        const project = { id: newId('project'), name: options.name, createdAt: cli.clock.now() };
        await createProject(prisma, project);
        const text = `Project ${project.id} ${quoted(project.name)}`;
        if (options.environment === undefined) {
          print(cli, options, project, text);
          return;
        }
        const { environment, keys } = await firstEnvironment(cli, prisma, project.id, options.environment);
        const lines = [
          text,
          `Environment ${environment.id} ${quoted(environment.name)}`,
          ...keys.map(({ id, type, key }) => `${type} key ${id}, shown only once:\n${key}`),
        ];
        print(cli, options, { ...project, environment, keys }, lines.join('\n'));
      }),
    );
  addList(projects, cli, {
    description: 'List the projects',
    example: 'rtc projects list',
    rows: ({ prisma }) => listProjects(prisma),
    columns: {
      PROJECT: (row) => row.id,
      CREATED: (row) => row.createdAt,
      NAME: (row) => quoted(row.name),
    },
  });
  return projects;
}

async function firstEnvironment(cli: Cli, prisma: Database['prisma'], projectId: string, name: string) {
  const environment = { id: newId('environment'), projectId, name, createdAt: cli.clock.now() };
  await createEnvironment(prisma, environment);
  const keys = [];
  for (const type of API_KEY_TYPES) keys.push(await insertKey(cli, prisma, { environmentId: environment.id, type }));
  return { environment, keys };
}

export function environmentsCommands(cli: Cli): Command {
  const environments = new Command('environments').description('Environments: every room and key belongs to one');
  const example = 'rtc environments create --project proj_01… --name production';
  addCommand(environments, 'create', 'Create an environment of a project', example)
    .option(...PROJECT_OPTION)
    .requiredOption('--name <name>', 'name of the environment, unique in its project', parseName)
    .action((options: OutputOptions & { project?: string; name: string }) => addEnvironment(cli, options));
  addList(environments, cli, {
    description: 'List the environments of a project',
    example: 'rtc environments list --project proj_01…',
    filters: [new Option(...PROJECT_OPTION)],
    rows: async ({ prisma }, options: OutputOptions & { project?: string }) => {
      const projectId = await projectOf(prisma, options.project);
      const rows = await listEnvironments(prisma, projectId);
      if (rows === null) throw unknownProject(projectId);
      return rows;
    },
    columns: {
      ENVIRONMENT: (row) => row.id,
      CREATED: (row) => row.createdAt,
      NAME: (row) => quoted(row.name),
    },
  });
  addCommand(
    environments,
    'usage [environment]',
    'Show the usage by UTC day',
    'rtc environments usage env_01… --days 7',
  )
    .option('--days <count>', 'number of days up to today, 1 to 92', parseDays, USAGE_DAYS_DEFAULT)
    .action((given: string | undefined, options: OutputOptions & { days: number }) =>
      withDatabase(cli, async (database) => {
        const tenant = await environmentOf(database.prisma, given, 'the environment');
        printList(cli, options, await usageOf(cli, database, tenant, options.days), {
          DAY: ({ day }) => day,
          ROOMS: ({ rooms }) => rooms,
          'PARTICIPANT MINUTES': ({ participantMinutes }) => participantMinutes,
          PEAK: ({ peakParticipants }) => peakParticipants,
          RELAYED: ({ relayShare: share }) => (share === null ? '-' : `${Math.round(share * 100)} %`),
          DELIVERIES: ({ deliveries }) => deliveries,
          'RECORDED MINUTES': ({ recordedMinutes }) => recordedMinutes,
        });
      }),
    );
  return environments;
}

function addEnvironment(cli: Cli, options: OutputOptions & { project?: string; name: string }): Promise<void> {
  return withDatabase(cli, async ({ prisma }) => {
    const projectId = await projectOf(prisma, options.project);
    const environment = { id: newId('environment'), projectId, name: options.name, createdAt: cli.clock.now() };
    switch (await createEnvironment(prisma, environment)) {
      case 'project_not_found':
        throw unknownProject(projectId);
      case 'name_taken':
        throw new UsageError(`The project already has an environment ${quoted(options.name)}. Choose another --name.`);
      case 'created':
        print(cli, options, environment, `Environment ${environment.id} ${quoted(environment.name)}`);
    }
  });
}

async function usageOf(cli: Cli, { sql }: Database, tenant: Tenant, days: number) {
  const now = cli.clock.now();
  const last = dayOf(now);
  const rows = await readUsage(sql, tenant, new Date(last.getTime() - (days - 1) * DAY_MS), last, now);
  return rows.map(presentUsageDay);
}

function unknownProject(id: string): UsageError {
  return notFound('Project', id, 'projects list');
}
