-- An earlier text is forgotten with the sessions that supported it then, also when the claim rests on others by now.
ALTER TABLE claim_texts ADD COLUMN threads TEXT NOT NULL DEFAULT '[]';

PRAGMA user_version = 7;
