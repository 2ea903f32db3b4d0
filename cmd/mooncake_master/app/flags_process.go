package app

// processFlags are about the process itself: its log and its command line.
var processFlags = []Flag{
	{
		Name: "log_dir", Kind: String, Default: "", Group: GroupLog, Key: "-",
		Help: "write the log to a file in this folder instead of to standard error",
		bind: func(c *Config) any { return &c.Log.Dir },
	},
	{
		Name: "minloglevel", Kind: Int32, Default: "0", Group: GroupLog, Key: "-",
		Help: "lowest severity logged: 0 info, 1 warning, 2 error",
		bind: func(c *Config) any { return &c.Log.MinLevel },
	},
	{
		Name: "v", Kind: Int32, Default: "0", Group: GroupLog, Key: "-",
		Help: "1 logs debug messages too, 2 and more traces",
		bind: func(c *Config) any { return &c.Log.Verbosity },
	},
	{
		Name: "logtostderr", Kind: Bool, Default: "false", Group: GroupLog, Key: "-",
		Help: "write to standard error even with --log_dir",
		bind: func(c *Config) any { return &c.Log.ToStderr },
	},
	{
		Name: "alsologtostderr", Kind: Bool, Default: "false", Group: GroupLog, Key: "-",
		Help: "write to standard error as well as to --log_dir",
		bind: func(c *Config) any { return &c.Log.AlsoStderr },
	},
	{
		Name: "alsologtoemail", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "mail addresses for log messages",
	},
	{
		Name: "colorlogtostderr", Kind: Bool, Default: "false", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "colours on a terminal",
	},
	{
		Name: "drop_log_memory", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "page cache of log files",
	},
	{
		Name: "log_backtrace_at", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "source line whose messages come with a stack",
	},
	{
		Name: "log_link", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "more places for links to the log file",
	},
	{
		Name: "log_prefix", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "time and severity before each message",
	},
	{
		Name: "logbuflevel", Kind: Int32, Default: "0", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity up to which messages are buffered",
	},
	{
		Name: "logbufsecs", Kind: Int32, Default: "30", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "seconds messages are buffered",
	},
	{
		Name: "logemaillevel", Kind: Int32, Default: "999", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity from which messages are mailed",
	},
	{
		Name: "logfile_mode", Kind: Int32, Default: "436", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "permissions of log files",
	},
	{
		Name: "logmailer", Kind: String, Default: "/bin/mail", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "program that sends mail",
	},
	{
		Name: "max_log_size", Kind: Int32, Default: "1800", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "megabytes of one log file",
	},
	{
		Name: "stderrthreshold", Kind: Int32, Default: "2", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "severity from which messages go to standard error too",
	},
	{
		Name: "stop_logging_if_full_disk", Kind: Bool, Default: "false", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "stop logging when the disk is full",
	},
	{
		Name: "symbolize_stacktrace", Kind: Bool, Default: "true", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "names in stack traces",
	},
	{
		Name: "vmodule", Kind: String, Default: "", Group: GroupLog, Effect: Neutral, Key: "-",
		Feature: "belongs to the logging library of the original",
		Help:    "verbosity per source file",
	},

	{
		Name: "flagfile", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "files with one flag per line, separated by commas",
	},
	{
		Name: "fromenv", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "flags to take from FLAGS_NAME of the environment, separated by commas; each must be there",
	},
	{
		Name: "tryfromenv", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "the same for those that are there",
	},
	{
		Name: "undefok", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "names that are no error though no such flag exists, separated by commas",
	},
	{
		Name: "help", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print all flags and exit",
	},
	{
		Name: "helpfull", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "the same",
	},
	{
		Name: "helppackage", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "the same",
	},
	{
		Name: "helpshort", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print the flags that have an effect in this build and exit",
	},
	{
		Name: "helpon", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "print the flags of the sections whose name contains this and exit",
	},
	{
		Name: "helpmatch", Kind: String, Default: "", Group: GroupBuiltin, Key: "-",
		Help: "print the flags whose name or section contains this and exit",
	},
	{
		Name: "helpxml", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print all flags as XML and exit",
	},
	{
		Name: "version", Kind: Bool, Default: "false", Group: GroupBuiltin, Key: "-",
		Help: "print the version and exit",
	},
	{
		Name: "tab_completion_word", Kind: String, Default: "", Group: GroupBuiltin, Effect: Neutral, Key: "-",
		Feature: "no completion by the shell",
		Help:    "completion by the shell",
	},
	{
		Name: "tab_completion_columns", Kind: Int32, Default: "80", Group: GroupBuiltin, Effect: Neutral, Key: "-",
		Feature: "no completion by the shell",
		Help:    "completion by the shell",
	},
}
