import { formatTimestamp, newId } from '@callplane/core';
import { createEnvironment, listEnvironments } from '@callplane/db';
import { Command } from 'commander';
import { parseName } from './arguments.js';
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
              `The project has an environment ${quoted(options.name)} already: give another --name.`,
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
  return environments;
}

function unknownProject(id: string): UsageError {
  return new UsageError(`There is no project ${quoted(id)}: "rtc projects list" shows those there are.`);
}
