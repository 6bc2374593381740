-- Tokens of thought, which are part of what a model put out.
ALTER TABLE requests ADD COLUMN tokens_reasoning INTEGER;

PRAGMA user_version = 4;
