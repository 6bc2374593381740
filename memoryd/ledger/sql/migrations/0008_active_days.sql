-- Days (since 1970, UTC) on which any session was recorded, so that what nobody uses ages only while agents are used.
CREATE TABLE active_days (
  day INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER sessions_day AFTER INSERT ON sessions BEGIN
  INSERT INTO active_days (day) SELECT new.updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.updated_at / 86400);
END;

CREATE TRIGGER sessions_later_day AFTER UPDATE OF updated_at ON sessions BEGIN
  INSERT INTO active_days (day) SELECT new.updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.updated_at / 86400);
END;

CREATE TRIGGER stage1_outputs_day AFTER INSERT ON stage1_outputs BEGIN
  INSERT INTO active_days (day) SELECT new.source_updated_at / 86400
  WHERE NOT EXISTS (SELECT 1 FROM active_days WHERE day = new.source_updated_at / 86400);
END;

INSERT OR IGNORE INTO active_days (day) SELECT updated_at / 86400 FROM sessions;

INSERT OR IGNORE INTO active_days (day) SELECT source_updated_at / 86400 FROM stage1_outputs;

PRAGMA user_version = 8;
