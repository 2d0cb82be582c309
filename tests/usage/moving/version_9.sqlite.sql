-- A record of schema 9. The servers of commit ea4a021 wrote it on 2026-11-28: the first one answered calls and
-- stopped, and the record was started again. The second one was killed a few seconds after its calls,
-- and declared gone as of 75 seconds later. The third one was killed, and nobody said a word of it; it
-- had answered 404, too. The fourth one answered calls and stopped. The host's name was replaced.
CREATE TABLE media_head_ledger (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      schema INTEGER NOT NULL,
      started INTEGER CHECK (started BETWEEN -8640000000000000 AND 8640000000000000)
    ) STRICT, WITHOUT ROWID;
INSERT INTO media_head_ledger VALUES(1,9,1795826819100);
CREATE TABLE media_head_usage (
      day TEXT CHECK (day IS date(day)),
      route TEXT NOT NULL,
      method TEXT NOT NULL,
      phase TEXT NOT NULL,
      brownout TEXT NOT NULL,
      status TEXT NOT NULL,
      impact TEXT CHECK (impact IN ('breaking', 'none')),
      client TEXT NOT NULL,
      release TEXT NOT NULL,
      calls INTEGER NOT NULL CHECK (calls BETWEEN 1 AND 9007199254740991),
      last INTEGER NOT NULL CHECK (last BETWEEN -8640000000000000 AND 8640000000000000),
      PRIMARY KEY (day, route, method, phase, brownout, status, impact, client, release)
    ) STRICT, WITHOUT ROWID;
INSERT INTO media_head_usage VALUES('2026-11-28','/audio/:token','HEAD','deprecated','','2xx','breaking','app Overcast','3.0',7,1795826824359);
INSERT INTO media_head_usage VALUES('2026-11-28','/audio/:token','HEAD','deprecated','','2xx','breaking','app curl','8.0',7,1795826903225);
INSERT INTO media_head_usage VALUES('2026-11-28','/audio/:token','HEAD','deprecated','','4xx','none','app Scanner','',6,1795826834757);
INSERT INTO media_head_usage VALUES('2026-11-28','/video/:token','GET','deprecated','','2xx','breaking','app Overcast','3.1',5,1795826834757);
INSERT INTO media_head_usage VALUES('2026-11-28','/video/:token','GET','deprecated','','2xx','breaking','app curl','8.0',2,1795826812990);
CREATE TABLE media_head_session (
      id TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64 AND id NOT GLOB '*[^ -~]*' AND length(CAST(id AS BLOB)) = length(id)),
      policies TEXT NOT NULL CHECK (json_valid(policies)),
      may_start_unregistered INTEGER NOT NULL DEFAULT 0
        CHECK (may_start_unregistered IN (0, 1)),
      public_url TEXT,
      contact TEXT,
      machine TEXT,
      pid INTEGER NOT NULL,
      process_started INTEGER NOT NULL CHECK (process_started BETWEEN -8640000000000000 AND 8640000000000000),
      began INTEGER NOT NULL CHECK (began BETWEEN -8640000000000000 AND 8640000000000000),
      reported INTEGER NOT NULL CHECK (reported BETWEEN -8640000000000000 AND 8640000000000000 AND reported >= began),
      clock INTEGER NOT NULL CHECK (clock BETWEEN -8640000000000000 AND 8640000000000000),
      restarted INTEGER CHECK (restarted BETWEEN -8640000000000000 AND 8640000000000000),
      sequence INTEGER NOT NULL CHECK (sequence BETWEEN 0 AND 9007199254740991),
      ended TEXT CHECK (ended IN ('stopped', 'gone', 'lapsed')),
      ended_by INTEGER CHECK (ended_by BETWEEN -8640000000000000 AND 8640000000000000),
      lead INTEGER CHECK (lead BETWEEN 0 AND 9007199254740991)
    ) STRICT, WITHOUT ROWID;
INSERT INTO media_head_session VALUES('056f3f3b-0078-41c9-b6ef-f0cc3601d756','{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}',0,NULL,NULL,'web-1',11301,1795826829544,1795826829745,1795826834757,1795826834754,NULL,2,NULL,NULL,NULL);
INSERT INTO media_head_session VALUES('460caca1-bc2b-4e4d-af70-aac39fca7cd3','{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}',0,NULL,NULL,'web-1',11107,1795826812686,1795826812799,1795826818911,1795826818911,NULL,5,'stopped',NULL,NULL);
INSERT INTO media_head_session VALUES('5d8d2689-3840-4b24-adae-f9e224273370','{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}',0,NULL,NULL,'web-1',11144,1795826819166,1795826819356,1795826829360,1795826829360,NULL,3,'gone',1795826904741,0);
INSERT INTO media_head_session VALUES('e3bd2854-9982-4db5-9ad6-25879abbb62b','{"/audio/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"},"/video/:token":{"deprecatedAt":1767225600000,"sunsetAt":1814313600000,"brownouts":[{"start":1803891600000,"end":1803906000000}],"brownoutStatus":503,"afterSunset":"gone","documentation":"/deprecation"}}',0,NULL,NULL,'web-1',11376,1795826898050,1795826898218,1795826904783,1795826904783,NULL,4,'stopped',NULL,NULL);
PRAGMA application_id = 1835560037;
PRAGMA user_version = 9;
