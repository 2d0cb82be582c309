-- A record of schema 9. The servers of commit ea4a021 wrote it on 2026-11-28: the first one answered calls and
-- stopped, and the record was started again. The second one was killed a few seconds after its calls,
-- and declared gone as of 75 seconds later. The third one was killed, and nobody said a word of it; it
-- had answered 404, too. The fourth one answered calls and stopped. The host's name was replaced.
CREATE TABLE media_head_ledger (
    id bigint NOT NULL,
    schema bigint NOT NULL,
    started bigint,
    CONSTRAINT media_head_ledger_id_check CHECK ((id = 1)),
    CONSTRAINT media_head_ledger_started_check CHECK (((started >= '-8640000000000000'::bigint) AND (started <= '8640000000000000'::bigint)))
);
CREATE TABLE media_head_session (
    id text NOT NULL COLLATE pg_catalog."C",
    policies json NOT NULL,
    may_start_unregistered bigint DEFAULT 0 NOT NULL,
    public_url text COLLATE pg_catalog."C",
    contact text COLLATE pg_catalog."C",
    machine text COLLATE pg_catalog."C",
    pid bigint NOT NULL,
    process_started bigint NOT NULL,
    began bigint NOT NULL,
    reported bigint NOT NULL,
    clock bigint NOT NULL,
    restarted bigint,
    sequence bigint NOT NULL,
    ended text COLLATE pg_catalog."C",
    ended_by bigint,
    lead bigint,
    CONSTRAINT media_head_session_began_check CHECK (((began >= '-8640000000000000'::bigint) AND (began <= '8640000000000000'::bigint))),
    CONSTRAINT media_head_session_check CHECK ((((reported >= '-8640000000000000'::bigint) AND (reported <= '8640000000000000'::bigint)) AND (reported >= began))),
    CONSTRAINT media_head_session_clock_check CHECK (((clock >= '-8640000000000000'::bigint) AND (clock <= '8640000000000000'::bigint))),
    CONSTRAINT media_head_session_ended_by_check CHECK (((ended_by >= '-8640000000000000'::bigint) AND (ended_by <= '8640000000000000'::bigint))),
    CONSTRAINT media_head_session_ended_check CHECK ((ended = ANY (ARRAY['stopped'::text, 'gone'::text, 'lapsed'::text]))),
    CONSTRAINT media_head_session_id_check CHECK ((((length(id) >= 1) AND (length(id) <= 64)) AND (id !~ '[^ -~]'::text))),
    CONSTRAINT media_head_session_lead_check CHECK (((lead >= 0) AND (lead <= '9007199254740991'::bigint))),
    CONSTRAINT media_head_session_may_start_unregistered_check CHECK ((may_start_unregistered = ANY (ARRAY[(0)::bigint, (1)::bigint]))),
    CONSTRAINT media_head_session_process_started_check CHECK (((process_started >= '-8640000000000000'::bigint) AND (process_started <= '8640000000000000'::bigint))),
    CONSTRAINT media_head_session_restarted_check CHECK (((restarted >= '-8640000000000000'::bigint) AND (restarted <= '8640000000000000'::bigint))),
    CONSTRAINT media_head_session_sequence_check CHECK (((sequence >= 0) AND (sequence <= '9007199254740991'::bigint)))
);
CREATE TABLE media_head_usage (
    day text NOT NULL COLLATE pg_catalog."C",
    route text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    phase text NOT NULL COLLATE pg_catalog."C",
    brownout text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    impact text NOT NULL COLLATE pg_catalog."C",
    client text NOT NULL COLLATE pg_catalog."C",
    release text NOT NULL COLLATE pg_catalog."C",
    calls bigint NOT NULL,
    last bigint NOT NULL,
    CONSTRAINT media_head_usage_calls_check CHECK (((calls >= 1) AND (calls <= '9007199254740991'::bigint))),
    CONSTRAINT media_head_usage_day_check CHECK ((day ~ '^[0-9]{4}-[01][0-9]-[0-3][0-9]$'::text)),
    CONSTRAINT media_head_usage_impact_check CHECK ((impact = ANY (ARRAY['breaking'::text, 'none'::text]))),
    CONSTRAINT media_head_usage_last_check CHECK (((last >= '-8640000000000000'::bigint) AND (last <= '8640000000000000'::bigint)))
);
INSERT INTO media_head_ledger VALUES
	(1, 9, 1795826819402);
INSERT INTO media_head_session VALUES
	('d5c542d9-d056-4642-b282-cb3e8459d21d', '{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}', 0, NULL, NULL, 'web-1', 11157, 1795826819449, 1795826819624, 1795826829633, 1795826829628, NULL, 3, 'gone', 1795826905426, 1),
	('0e0c3f58-8c0a-4961-a786-26b40f8384a3', '{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}', 0, NULL, NULL, 'web-1', 11114, 1795826812809, 1795826812951, 1795826819042, 1795826819042, NULL, 5, 'stopped', NULL, NULL),
	('9afbbe12-21e7-4cfe-8511-16cfa04df972', '{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}', 0, NULL, NULL, 'web-1', 11383, 1795826898352, 1795826898712, 1795826905584, 1795826905583, NULL, 4, 'stopped', NULL, NULL),
	('0b35fbd1-080f-44c9-ba91-b86ead0549ec', '{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}', 0, NULL, NULL, 'web-1', 11309, 1795826829802, 1795826830126, 1795826835133, 1795826835132, NULL, 2, NULL, NULL, NULL);
INSERT INTO media_head_usage VALUES
	('2026-11-28', '/video/:token', 'GET', 'deprecated', '', '2xx', 'breaking', 'app curl', '8.0', 2, 1795826813113),
	('2026-11-28', '/audio/:token', 'HEAD', 'deprecated', '', '2xx', 'breaking', 'app Overcast', '3.0', 7, 1795826824629),
	('2026-11-28', '/audio/:token', 'HEAD', 'deprecated', '', '4xx', 'none', 'app Scanner', '', 6, 1795826835138),
	('2026-11-28', '/video/:token', 'GET', 'deprecated', '', '2xx', 'breaking', 'app Overcast', '3.1', 5, 1795826835138),
	('2026-11-28', '/audio/:token', 'HEAD', 'deprecated', '', '2xx', 'breaking', 'app curl', '8.0', 7, 1795826903714);
ALTER TABLE ONLY media_head_ledger
    ADD CONSTRAINT media_head_ledger_pkey PRIMARY KEY (id);
ALTER TABLE ONLY media_head_session
    ADD CONSTRAINT media_head_session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY media_head_usage
    ADD CONSTRAINT media_head_usage_pkey PRIMARY KEY (day, route, method, phase, brownout, status, impact, client, release);
