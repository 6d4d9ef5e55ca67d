import { createHmac, timingSafeEqual } from 'node:crypto';
import { PublicError, type MasterKeys } from '@callplane/core';
import { Router, type Request, type Response } from 'express';
import type { FolderStore } from '@callplane/store';
import type { Deps } from '../deps.js';
import { onlyMethods } from '../http/errors.js';
import { contextOf } from '../http/request-context.js';

/** The path of a link to one file, which works until `expiresAt`. */
export function fileLink(masterKeys: MasterKeys, name: string, expiresAt: Date): string {
  const key = masterKeys.keys.get(masterKeys.sealWith) ?? Buffer.alloc(0);
  const expires = String(Math.ceil(expiresAt.getTime() / 1000));
  const signature = sign(key, name, expires).toString('base64url');
  return `/${name}?expires=${expires}&signature=${signature}`;
}

function sign(key: Buffer, name: string, expires: string): Buffer {
  const linkKey = createHmac('sha256', key).update('links of recordings').digest();
  return createHmac('sha256', linkKey).update(`${name}\n${expires}`).digest();
}

const LINK_ROUTE = '/recordings/:recordingId/:file';

/** Serves files of recordings to callers with a link. */
export function recordingFiles({ masterKeys, clock }: Pick<Deps, 'masterKeys' | 'clock'>, store: FolderStore): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const layer = router.route(LINK_ROUTE);
  layer.get((request: Request, response: Response, next) => {
    const context = contextOf(response);
    context.route = LINK_ROUTE;
    // The path of a link is the name of the file in the store.
    const name = request.path.slice(1);
    const [expires, signature] = [request.query['expires'], request.query['signature']];
    const isValid =
      typeof expires === 'string' &&
      typeof signature === 'string' &&
      Number(expires) * 1000 >= clock.now().getTime() &&
      [...masterKeys.keys.values()].some((key) => isEqual(sign(key, name, expires), signature));
    if (!isValid) throw new PublicError('RECORDING_NOT_FOUND', { message: 'The link is wrong or has expired.' });
    response.set({
      ...context.headers,
      'cache-control': 'private, no-transform',
      // A page of any site that has the link may play the file.
      'cross-origin-resource-policy': 'cross-origin',
      'content-security-policy': "default-src 'none'; sandbox",
    });
    response.sendFile(store.pathOf(name), { cacheControl: false, dotfiles: 'deny' }, (error) => {
      if (error === undefined || response.headersSent) return;
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
      next(isGone ? new PublicError('RECORDING_NOT_FOUND') : error);
    });
  });
  layer.all(onlyMethods(['get']));
  return router;
}

function isEqual(expected: Buffer, given: string): boolean {
  const bytes = Buffer.from(given, 'base64url');
  return bytes.length === expected.length && timingSafeEqual(bytes, expected);
}
