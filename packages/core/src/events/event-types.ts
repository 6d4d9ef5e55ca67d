/** The event types with their meaning, which the API, the documents and the console show. */
export const EVENT_TEXTS = {
  'room.created': 'The room was created.',
  'room.started': 'The first participant joined.',
  'room.updated': 'The server changed the room.',
  'room.ended': 'The clean-up of the room is complete.',
  'participant.joined': 'A session began.',
  'participant.waiting': 'A session began in the lobby.',
  'participant.admitted': 'The server let a participant in. `participant.joined` follows if it waits.',
  'participant.left': 'A session ended. With `waiting`, it was in the lobby.',
  'participant.updated': 'The server changed the name, metadata, permissions or another field of a participant.',
  'track.published': 'Audio or video of a participant reaches the media server.',
  'track.unpublished': 'Audio or video of a participant ended. Always before `participant.left`.',
  'track.muted': 'The server muted a track. Participants mute their own without an event.',
  'recording.started': 'A recording began.',
  'recording.stopped': 'A recording ended. Its files are made next.',
  'recording.completed': 'The files of a recording exist.',
  'recording.failed': 'The files of a recording cannot be made.',
  'operation.failed': 'A clean-up failed for good.',
  'webhook.disabled': 'Another endpoint was disabled because it only failed.',
  'webhook.endpoint.failing': 'All attempts of another endpoint have failed for 15 minutes.',
  'webhook.endpoint.recovered': 'An attempt of a failing endpoint has succeeded since.',
  'webhook.test': 'You requested a test.',
} as const;
export type EventType = keyof typeof EVENT_TEXTS;
export const EVENT_TYPES = Object.keys(EVENT_TEXTS) as EventType[];
