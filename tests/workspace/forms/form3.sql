BEGIN TRANSACTION;
CREATE TABLE arrays (
  run_id TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run_id, name));
INSERT INTO "arrays" VALUES('463ea0b4b86c2b28','held_out',X'65766964656E6365');
CREATE TABLE derived (key TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE items (
  collection TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, rows INTEGER NOT NULL,
  images INTEGER NOT NULL, bytes INTEGER NOT NULL, source TEXT NOT NULL, created REAL NOT NULL, details TEXT NOT NULL, "owner" TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (collection, kind, name));
INSERT INTO "items" VALUES('first','captions','sat','81833a83332603ae',2,2,2339,'sat.json',1790000000.0,'{}','');
INSERT INTO "items" VALUES('first','attributes','labels','39a17eec913740bd',2,2,1695,'labels.csv',1790000001.0,'{"attributes": {"gender": {"column": "bb_gender", "mapping": {"Male": "Male", "Female": "Female"}}}}','');
CREATE TABLE log (run_id TEXT NOT NULL, at REAL NOT NULL, message TEXT NOT NULL);
INSERT INTO "log" VALUES('463ea0b4b86c2b28',1790000004.0,'queued');
INSERT INTO "log" VALUES('463ea0b4b86c2b28',1790000006.0,'started in process 32691');
INSERT INTO "log" VALUES('463ea0b4b86c2b28',1790000008.0,'finished');
INSERT INTO "log" VALUES('193abaf999b4e75b',1790000010.0,'queued');
INSERT INTO "log" VALUES('193abaf999b4e75b',1790000012.0,'started in process 32691');
CREATE TABLE results (
  attribute TEXT, model TEXT, metric TEXT, encoder TEXT, direction TEXT, condition TEXT, value REAL, spread REAL,
  spread_kind TEXT, scale REAL, run_id TEXT NOT NULL, seeds INTEGER, n INTEGER, ci_low REAL, ci_high REAL,
  method TEXT, paper TEXT, "table" TEXT, coverage TEXT, alignment TEXT, object TEXT, "group" TEXT,
  photographs TEXT, prompt TEXT, device TEXT, interval TEXT, training INTEGER, verdict TEXT);
INSERT INTO "results" VALUES('gender','sat','LIC_M','ngram','','',44.4,1.5,'sd',1.0,'463ea0b4b86c2b28',2,20,-55.8,117.3,'','measured','','','','','','','','','refits',18,'');
INSERT INTO "results" VALUES('gender','sat','SC','ngram','','',60.0,0.0,'',1.0,'463ea0b4b86c2b28',2,20,60.0,60.0,'','measured','','','','','','','','','refits',18,'');
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY, collection TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL, token TEXT NOT NULL,
  progress REAL NOT NULL, message TEXT NOT NULL, notes TEXT NOT NULL, created REAL NOT NULL, started REAL,
  finished REAL, heartbeat REAL NOT NULL, metrics TEXT NOT NULL DEFAULT '[]', "owner" TEXT NOT NULL DEFAULT '', "process" TEXT NOT NULL DEFAULT '');
INSERT INTO "runs" VALUES('463ea0b4b86c2b28','first','{"measure": "lic", "version": 4, "model": "sat", "captions": "81833a83332603ae", "references": "", "labels": {"table": "39a17eec913740bd", "column": "bb_gender", "mapping": {"Male": "Male", "Female": "Female"}}, "attribute": {"name": "gender", "title": "Gender", "values": ["Male", "Female"], "words": {"Male": ["man"], "Female": ["woman"]}, "mask_token": "<gender>", "columns": [], "aliases": {}, "note": ""}, "objects": {}, "coverage": "", "shared_with": "", "options": {"attacker": "ngram", "seeds": 2}}','finished','one',1.0,'finished','["a note"]',1790000003.0,1790000005.0,1790000007.0,1790000005.0,'["LIC_M", "SC"]','','');
INSERT INTO "runs" VALUES('193abaf999b4e75b','first','{"measure": "lic", "version": 4, "model": "sat", "captions": "81833a83332603ae", "references": "", "labels": {"table": "39a17eec913740bd", "column": "bb_gender", "mapping": {"Male": "Male", "Female": "Female"}}, "attribute": {"name": "gender", "title": "Gender", "values": ["Male", "Female"], "words": {"Male": ["man"], "Female": ["woman"]}, "mask_token": "<gender>", "columns": [], "aliases": {}, "note": ""}, "objects": {}, "coverage": "", "shared_with": "", "options": {"attacker": "lstm_bi", "seeds": 2}}','running','two',0.0,'starting','[]',1790000009.0,1790000011.0,NULL,1790000011.0,'[]','','');
CREATE INDEX log_of_run ON log (run_id);
CREATE INDEX results_of_run ON results (run_id);
COMMIT;
PRAGMA user_version=3;
