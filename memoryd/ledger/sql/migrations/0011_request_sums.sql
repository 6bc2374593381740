-- What requests of long ago took, summed up by UTC day (since 1970), stage and model, so that their rows can go. job_key
-- is empty for sessions: of each of them a row a day would stay for ever. outcome pending: nobody settled it.
CREATE TABLE request_sums (
  day INTEGER NOT NULL,
  kind TEXT NOT NULL,
  job_key TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  outcome TEXT NOT NULL,
  requests INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  tokens_cached INTEGER NOT NULL,
  tokens_reasoning INTEGER NOT NULL,
  cost REAL NOT NULL,
  duration_ms INTEGER NOT NULL,
  PRIMARY KEY (day, kind, job_key, provider, model, outcome)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 11;
