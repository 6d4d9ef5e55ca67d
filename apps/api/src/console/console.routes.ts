import type { Deps } from '../deps.js';
import { ContextSchema, presentContext } from '../context/context.schemas.js';
import { defineRoute, type Route } from '../http/route.js';
import { strictObject } from '../http/schemas.js';
import { Type } from 'typebox';
import { consoleCookie, noConsoleCookie } from './console-cookie.js';
import { signIn, signOut } from './console.service.js';

const CreateConsoleSessionBody = strictObject(
  {
    readOnly: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether the session gets only the scopes that end in `:read`.' }),
    ),
  },
  { title: 'CreateConsoleSession' },
);

/** None if the console is switched off. */
export function consoleRoutes(deps: Deps): Route[] {
  const { console } = deps;
  if (console === null) return [];
  return [
    defineRoute({
      method: 'post',
      path: '/v1/console/sessions',
      operationId: 'createConsoleSession',
      summary: 'Sign in to the console',
      description:
        'Send a secret API key, or the code of a link of `rtc console login`, as `Authorization: Bearer`. The answer ' +
        'sets the cookie of a session, which every route accepts instead of the key. The session has the scopes of ' +
        'the key or link. It ends after 8 hours, after one hour without a request, and with its key.',
      tag: 'Console',
      scope: null,
      acceptsLoginCode: true,
      setsCookie: true,
      body: CreateConsoleSessionBody,
      responses: { 201: { description: 'The context of the session.', schema: ContextSchema } },
      errors: ['INSUFFICIENT_SCOPE', 'CONSOLE_SESSION_LIMIT_REACHED'],
      async handle({ caller, body, isSecure, log }) {
        const { secret, seconds, context } = await signIn(deps, caller, body.readOnly ?? false);
        log({ consoleSessionId: context.session.id });
        const headers = { 'set-cookie': consoleCookie(secret, isSecure, seconds) };
        return { status: 201, body: presentContext(context, console.signalingUrl), headers };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/v1/console/sessions/current',
      operationId: 'endConsoleSession',
      summary: 'Sign out of the console',
      description: 'Ends the session of the request, at every instance within 5 seconds, and deletes its cookie.',
      tag: 'Console',
      scope: null,
      setsCookie: true,
      responses: { 204: { description: 'The session has ended.', schema: null } },
      errors: ['CONSOLE_SESSION_NOT_FOUND'],
      async handle({ caller, isSecure }) {
        await signOut(deps, console, caller);
        return { status: 204, headers: { 'set-cookie': noConsoleCookie(isSecure) } };
      },
    }),
  ];
}
