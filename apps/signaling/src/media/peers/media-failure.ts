import { MediaError } from '@callplane/media';
import { RequestFailure } from '../../connections/request-failure.js';
import { mediaUnavailable } from '../media-host.js';

/** The failure of a client's request for an error of the media server; any other error stays as it is. */
export function toFailure(error: unknown): unknown {
  if (!(error instanceof MediaError)) return error;
  if (error.code === 'invalid_sdp') {
    return new RequestFailure('invalid_sdp', 'The media server refused the session description.', undefined, {
      cause: error,
    });
  }
  if (error.code === 'closed') return new RequestFailure('conflict', undefined, undefined, { cause: error });
  return mediaUnavailable(error);
}
