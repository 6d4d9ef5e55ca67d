import { BACKOFF_SECONDS, LEASE_SECONDS } from '@callplane/core';

const TABLES = ['runtime_operations', 'webhook_deliveries'];

/**
 * A log of leases, and of rows that must stay closed, in the schema of the simulation. The rows alone do not show who
 * wrote them, because the steps of an operation can be repeated. A trigger therefore knows the process of each lease,
 * and writes down forbidden changes: a claim or an end of a lease that another process holds, and an outcome without
 * a lease or after its end. A late answer of a receiver may settle a delivery whose lease has expired. It also knows
 * when an attempt at an operation has failed, and writes down the next claim if it comes before the delay of the
 * schedule.
 */
export const LEASE_LOG = `
  CREATE TABLE sim.leases (token uuid PRIMARY KEY, holder text NOT NULL, is_woken boolean NOT NULL);
  CREATE TABLE sim.breaks (id bigserial PRIMARY KEY, guarantee text NOT NULL, what text NOT NULL);
  CREATE TABLE sim.failed_attempts (id text, run int, attempt int, at timestamptz NOT NULL, PRIMARY KEY (id, run, attempt));
  CREATE FUNCTION sim.watch_lease() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    writer text := current_setting('sim.process');
    held_by text;
    is_of_woken boolean;
    is_operation boolean := TG_TABLE_NAME = 'runtime_operations';
    is_held boolean := OLD.lease_token IS NOT NULL AND OLD.lease_expires_at > sim.now();
    is_success boolean := NEW.status IN ('completed', 'succeeded');
    -- The removal of an endpoint ends its deliveries, also those in flight.
    is_removal boolean := to_jsonb(NEW) ->> 'failure_reason' = 'endpoint_deleted';
    is_stalled boolean;
    wrong text;
    failed_at timestamptz;
  BEGIN
    SELECT l.holder, l.is_woken INTO held_by, is_of_woken FROM sim.leases l WHERE l.token = OLD.lease_token;
    -- A worker that gets the turn of a dead or frozen one ends its leases. Its lock lasts for 10 s at least, and one
    -- that wakes up may continue the turn that it has lost.
    is_stalled := NOT is_operation AND NOT is_success AND NEW.lease_token IS NULL
      AND (is_of_woken OR OLD.lease_expires_at <= sim.now() + interval '${LEASE_SECONDS - 10} seconds');
    IF is_operation AND NEW.lease_token IS DISTINCT FROM OLD.lease_token THEN
      IF NEW.lease_token IS NULL AND NEW.status = 'pending' THEN
        INSERT INTO sim.failed_attempts VALUES (OLD.id, OLD.run, OLD.run_attempts, sim.now()) ON CONFLICT DO NOTHING;
      ELSIF NEW.lease_token IS NOT NULL THEN
        SELECT f.at INTO failed_at FROM sim.failed_attempts f
          WHERE f.id = OLD.id AND f.run = OLD.run AND f.attempt = OLD.run_attempts;
        IF sim.now() < failed_at + (ARRAY[${BACKOFF_SECONDS.join(', ')}])[OLD.run_attempts] * interval '1 second' THEN
          INSERT INTO sim.breaks (guarantee, what) VALUES ('delays-of-the-schedule',
            format('%s claims attempt %s of %s %s after the failure of the one before', writer, NEW.run_attempts, OLD.id, sim.now() - failed_at));
        END IF;
      END IF;
    END IF;
    IF OLD.lease_token IS NULL THEN
      IF is_operation AND OLD.status = 'completed' THEN wrong := 'writes after the outcome';
      ELSIF is_success AND OLD.status <> NEW.status THEN wrong := 'writes an outcome without a lease';
      END IF;
    ELSIF NEW.lease_token IS DISTINCT FROM OLD.lease_token THEN
      IF is_held AND NEW.lease_token IS NOT NULL THEN wrong := 'claims the row too early';
      ELSIF is_held AND writer <> held_by AND is_removal IS NOT TRUE AND is_stalled IS NOT TRUE THEN wrong := 'ends the lease';
      ELSIF is_operation AND NOT is_held AND NEW.lease_token IS NULL AND NEW.status <> 'failed' THEN
        wrong := 'writes an outcome after the end of the lease';
      ELSIF NOT is_held AND is_success AND writer <> held_by THEN wrong := 'writes an outcome';
      END IF;
    END IF;
    IF NEW.lease_token IS NOT NULL AND NEW.lease_token IS DISTINCT FROM OLD.lease_token THEN
      INSERT INTO sim.leases VALUES (NEW.lease_token, writer, current_setting('sim.woken')::boolean)
      ON CONFLICT (token) DO UPDATE SET is_woken = EXCLUDED.is_woken;
    END IF;
    IF wrong IS NOT NULL THEN
      INSERT INTO sim.breaks (guarantee, what) VALUES ('one-writer',
        format('%s %s, whose latest lease is of %s', writer, wrong || ' of ' || OLD.id, coalesce(held_by, 'nobody')));
    END IF;
    RETURN NULL;
  END $$;
  -- Transactions that run one after another leave rooms and participants closed once they are.
  CREATE FUNCTION sim.watch_room() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF OLD.status IN ('ending', 'ended') AND NEW.status NOT IN ('ending', 'ended') THEN
      INSERT INTO sim.breaks (guarantee, what)
      VALUES ('no-join-after-the-end', format('%s opens %s again', current_setting('sim.process'), OLD.id));
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER sim_watch_room AFTER UPDATE ON public.rooms FOR EACH ROW EXECUTE FUNCTION sim.watch_room();
  CREATE FUNCTION sim.watch_session() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT 1 FROM public.participants p WHERE p.id = NEW.participant_id AND p.removed_at IS NOT NULL) THEN
      INSERT INTO sim.breaks (guarantee, what)
      VALUES ('no-join-after-removal', format('%s lets %s join', current_setting('sim.process'), NEW.participant_id));
    END IF;
    -- A move begins a session with the secret of the one that it ends.
    IF EXISTS (SELECT 1 FROM public.participant_sessions s
      WHERE s.resume_secret_hash = NEW.resume_secret_hash AND s.id <> NEW.id AND s.ended_at IS NULL) THEN
      INSERT INTO sim.breaks (guarantee, what)
      VALUES ('one-room-at-once', format('%s begins %s beside another room', current_setting('sim.process'), NEW.id));
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER sim_watch_session AFTER INSERT ON public.participant_sessions
    FOR EACH ROW EXECUTE FUNCTION sim.watch_session();
  -- A connection that resumes a session gets a number of its own, so that the one before cannot write.
  CREATE FUNCTION sim.watch_connection() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.connection <= OLD.connection AND (NEW.instance_id <> OLD.instance_id OR NEW.disconnected_at IS NULL) THEN
      INSERT INTO sim.breaks (guarantee, what) VALUES ('one-connection',
        format('%s resumes %s as connection %s again', current_setting('sim.process'), OLD.id, OLD.connection));
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER sim_watch_connection AFTER UPDATE ON public.participant_sessions FOR EACH ROW
    WHEN (NEW.instance_id IS DISTINCT FROM OLD.instance_id OR OLD.disconnected_at IS NOT NULL)
    EXECUTE FUNCTION sim.watch_connection();
  ${TABLES.map(
    (table) => `CREATE TRIGGER sim_watch_lease AFTER UPDATE ON public.${table}
      FOR EACH ROW EXECUTE FUNCTION sim.watch_lease();`,
  ).join('\n')}`;

/** Whether a statement asks if its worker holds an operation. A step that gets a row continues. */
export function isFence(text: string): boolean {
  return /^\s*SELECT 1 FROM runtime_operations WHERE/.test(text);
}

/**
 * Writes down that a step continues without the lease of the operation $1, or after its end. It belongs to the
 * transaction of the step, so it disappears with a step that changes nothing.
 */
export const FENCE_BREAK = `
  INSERT INTO sim.breaks (guarantee, what)
  SELECT 'one-writer', format('%s does a step of %s, whose lease is of %s, and %s', current_setting('sim.process'), o.id,
    l.holder, CASE WHEN o.lease_expires_at <= sim.now() THEN 'has expired' ELSE 'continues' END)
  FROM runtime_operations o JOIN sim.leases l ON l.token = o.lease_token
  WHERE o.id = $1 AND (l.holder <> current_setting('sim.process') OR o.lease_expires_at <= sim.now())`;
