-- The tables of consume-events.mjs. Each consumer has one row of event_cursors, made once.
CREATE TABLE event_cursors (consumer text PRIMARY KEY, cursor text);
INSERT INTO event_cursors (consumer) VALUES ('call-log');

CREATE TABLE call_log (
  position bigint GENERATED ALWAYS AS IDENTITY,
  event_id text NOT NULL,
  room_id text,
  type text NOT NULL,
  happened_at timestamptz NOT NULL
);
CREATE TABLE event_counts (type text PRIMARY KEY, events integer NOT NULL);
