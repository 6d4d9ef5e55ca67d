import { formatTimestamp, newId } from '@callplane/core';
import { createProject, listProjects } from '@callplane/db';
import { Command } from 'commander';
import { parseName } from './arguments.js';
import { withDatabase, type Cli } from './cli.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

export function projectsCommands(cli: Cli): Command {
  const projects = new Command('projects').description('Projects: each groups environments');
  addCommand(projects, 'create', 'Create a project', 'rtc projects create --name "My app"')
    .requiredOption('--name <name>', 'name of the project', parseName)
    .action((options: OutputOptions & { name: string }) =>
      withDatabase(cli, async ({ prisma }) => {
        const project = { id: newId('project'), name: options.name, createdAt: cli.clock.now() };
        await createProject(prisma, project);
        print(cli, options, project, `Project ${project.id} ${quoted(project.name)}`);
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
