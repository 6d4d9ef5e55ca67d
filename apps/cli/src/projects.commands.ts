import { API_KEY_TYPES, formatTimestamp, newId } from '@callplane/core';
import { createEnvironment, createProject, listProjects, type Database } from '@callplane/db';
import { Command } from 'commander';
import { parseName } from './arguments.js';
import { withDatabase, type Cli } from './cli.js';
import { insertKey } from './keys.commands.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

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
  addCommand(projects, 'list', 'List the projects', 'rtc projects list').action((options: OutputOptions) =>
    withDatabase(cli, async ({ sql }) => {
      const rows = await listProjects(sql);
      printList(cli, options, rows, [
        column('PROJECT', (row) => row.id),
        column('CREATED', (row) => formatTimestamp(row.createdAt)),
        column('NAME', (row) => quoted(row.name)),
      ]);
    }),
  );
  return projects;
}

/** The environment of a new project, with a key of each type. */
async function firstEnvironment(cli: Cli, prisma: Database['prisma'], projectId: string, name: string) {
  const environment = { id: newId('environment'), projectId, name, createdAt: cli.clock.now() };
  await createEnvironment(prisma, environment);
  const keys = [];
  for (const type of API_KEY_TYPES) keys.push(await insertKey(cli, prisma, { environmentId: environment.id, type }));
  return { environment, keys };
}
