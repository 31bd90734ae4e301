/* clbytes: safetensors files and OpenCL devices, from the command line.  Owns
 * the command line and standard output's fate; each subcommand is a file. */
#include "config.h"

#include "parse_plans.h"
#include "parse_size.h"
#include "report.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A bit an option, for what a subcommand takes. */
enum {
  TAKES_DEVICE = 1,
  TAKES_STAGING = 2,
  TAKES_CHUNK = 4,
  TAKES_DURABLE = 8,
  TAKES_QUIET = 16,
  TAKES_JSON = 32,
  TAKES_MAX = 64,
  TAKES_SIZES = 128,
  TAKES_LAYOUTS = 256,
  TAKES_ROUNDS = 512,
  TAKES_SECONDS = 1024,
  TAKES_LINEAR = 2048,
  TAKES_PLOT = 4096,
  TAKES_PLANS = 8192,
  TAKES_SHARD = 16384
};

struct command {
  const char *name;
  const char *operands; /* in words */
  int operand_count;
  unsigned takes;
  int (*run)(const struct tool_options *options, char **operands);
  const char *purpose;
};

static const struct command commands[] = {
    {"devices", "", 0, TAKES_STAGING | TAKES_CHUNK | TAKES_JSON,
     tool_cmd_devices,
     "list every OpenCL device, and how bytes will be moved on it"},
    {"inspect", "FILE", 1, TAKES_JSON, tool_cmd_inspect,
     "list the tensors and metadata of a safetensors file"},
    {"copy", "IN OUT", 2,
     TAKES_DEVICE | TAKES_STAGING | TAKES_CHUNK | TAKES_SHARD | TAKES_DURABLE |
         TAKES_QUIET | TAKES_JSON,
     tool_cmd_copy, "upload a file to a device and save it from there"},
    {"verify", "A B", 2, TAKES_QUIET, tool_cmd_verify,
     "compare two files, and say the first difference"},
    {"bench", "", 0,
     TAKES_DEVICE | TAKES_STAGING | TAKES_CHUNK | TAKES_QUIET | TAKES_JSON |
         TAKES_MAX | TAKES_SIZES | TAKES_LAYOUTS | TAKES_ROUNDS |
         TAKES_SECONDS | TAKES_LINEAR | TAKES_PLOT | TAKES_PLANS,
     tool_cmd_bench, "measure how fast layouts are read, beside raw OpenCL"},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct {
  unsigned bit;
  const char *name;
  const char *text;
} option_texts[] = {
    {TAKES_DEVICE, "device",
     "  -d, --device N|NAME  the device of index N, or with NAME in its name\n"
     "                       or its platform's, vendor's or version's;\n"
     "                       default: the first GPU, else device 0\n"},
    {TAKES_STAGING, "staging",
     "      --staging SIZE   most pinned host memory at once, such as 64M\n"},
    {TAKES_CHUNK, "chunk",
     "      --chunk SIZE     bytes of one transfer, such as 4M; at least 4K\n"},
    {TAKES_SHARD, "shard-size",
     "      --shard-size SIZE\n"
     "                       most bytes of a file, such as 5GB: what does not\n"
     "                       fit in one is saved as shards and an index\n"},
    {TAKES_DURABLE, "durable",
     "      --durable        return when the file is on the disk\n"},
    {TAKES_QUIET, "quiet",
     "  -q, --quiet          show no progress; verify: print differences\n"
     "                       alone\n"},
    {TAKES_JSON, "json", "      --json           write JSON\n"},
    {TAKES_MAX, "max",
     "      --max SIZE       the largest size; default: 256M or what fits\n"},
    {TAKES_SIZES, "sizes",
     "      --sizes LIST     sizes, such as 4K,16M; default: up to --max\n"},
    {TAKES_LAYOUTS, "layouts",
     "      --layouts LIST   layouts, such as reverse,rows-*; default: all\n"},
    {TAKES_PLANS, "plans",
     "      --plans LIST     of map, read, rect, pack, gather; default: all\n"},
    {TAKES_ROUNDS, "rounds",
     "      --rounds N       rounds that the median is of; default: 9\n"},
    {TAKES_SECONDS, "seconds",
     "      --seconds N      leave out what no longer fits into so many\n"},
    {TAKES_LINEAR, "linear",
     "      --linear         also measure whether cost is linear in bytes\n"},
    {TAKES_PLOT, "plot",
     "      --plot FILE      draw the largest sizes, as .svg or .png, with\n"
     "                       gnuplot\n"},
};
enum { OPTIONS = sizeof(option_texts) / sizeof(option_texts[0]) };

/* Bytes that a chunk has at least: clb_context_options.chunk_size. */
enum { LEAST_CHUNK = 4096 };

enum {
  OPTION_STAGING = 256,
  OPTION_CHUNK,
  OPTION_DURABLE,
  OPTION_JSON,
  OPTION_MAX,
  OPTION_SIZES,
  OPTION_LAYOUTS,
  OPTION_ROUNDS,
  OPTION_SECONDS,
  OPTION_LINEAR,
  OPTION_PLOT,
  OPTION_PLANS,
  OPTION_SHARD
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'd'},
    {"staging", required_argument, NULL, OPTION_STAGING},
    {"chunk", required_argument, NULL, OPTION_CHUNK},
    {"shard-size", required_argument, NULL, OPTION_SHARD},
    {"durable", no_argument, NULL, OPTION_DURABLE},
    {"quiet", no_argument, NULL, 'q'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"max", required_argument, NULL, OPTION_MAX},
    {"sizes", required_argument, NULL, OPTION_SIZES},
    {"layouts", required_argument, NULL, OPTION_LAYOUTS},
    {"rounds", required_argument, NULL, OPTION_ROUNDS},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"linear", no_argument, NULL, OPTION_LINEAR},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"plans", required_argument, NULL, OPTION_PLANS},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* What the command line asked for. */
struct request {
  struct tool_options options;
  unsigned given; /* bits of the options that were there */
  bool help;
  bool version;
};

static void print_usage(FILE *out, const struct command *command)
{
  const char *lead = "usage:";

  for (int i = 0; i < COMMANDS; i++)
    if (command == NULL || command == &commands[i]) {
      fprintf(out, "%6s clbytes %s [OPTION]...%s%s\n", lead, commands[i].name,
              *commands[i].operands == '\0' ? "" : " ", commands[i].operands);
      lead = "";
    }
}

static void print_help(const struct command *command)
{
  print_usage(stdout, command);
  putchar('\n');
  for (int i = 0; i < COMMANDS; i++)
    if (command == NULL || command == &commands[i])
      printf("  %-8s %s\n", commands[i].name, commands[i].purpose);
  printf("\nOptions:\n");
  for (int i = 0; i < OPTIONS; i++)
    if (command == NULL || (command->takes & option_texts[i].bit) != 0)
      fputs(option_texts[i].text, stdout);
  printf("  -h, --help           print this, or with a subcommand its own "
         "help\n"
         "  -V, --version        print the version\n"
         "\nSizes: K, M, G and T are powers of 1024, as are KiB, MiB, ...; "
         "KB, MB, ... are\npowers of 1000.\n"
         "Exit status: 0 done, 1 verify found a difference or bench wrong "
         "data, 2 wrong\nusage, 3 failed, 128 + N cancelled by signal N.\n");
}

static void print_version(void)
{
  unsigned library = clb_version();

  printf("clbytes %d.%d.%d\n", CLB_VERSION_MAJOR, CLB_VERSION_MINOR,
         CLB_VERSION_MICRO);
  printf("library %u.%u.%u\n", library >> 16, library >> 8 & 0xff,
         library & 0xff);
}

static int usage_error(const struct command *command)
{
  print_usage(stderr, command);
  fprintf(stderr, "Try 'clbytes %s%s--help'.\n",
          command == NULL ? "" : command->name, command == NULL ? "" : " ");
  return TOOL_USAGE;
}

static bool take_size(const char *option, const char *text, size_t *out)
{
  const char *fault = tool_parse_size(text, out);

  if (fault != NULL)
    tool_error("--%s: '%s' %s", option, text, fault);
  return fault == NULL;
}

static bool take_plans(const char *text, unsigned *out)
{
  bool right = tool_parse_plans(text, out);

  if (!right)
    tool_error("--plans: '%s' is no list of plans", text);
  return right;
}

/* Takes one option of bench; false if it is wrong, which has been said. */
static bool take_bench_option(int option, struct request *request)
{
  struct tool_options *options = &request->options;

  switch (option) {
  case OPTION_MAX:
    request->given |= TAKES_MAX;
    return take_size("max", optarg, &options->max);
  case OPTION_SIZES:
    request->given |= TAKES_SIZES;
    options->sizes = optarg;
    return true;
  case OPTION_LAYOUTS:
    request->given |= TAKES_LAYOUTS;
    options->layouts = optarg;
    return true;
  case OPTION_ROUNDS:
    request->given |= TAKES_ROUNDS;
    return take_size("rounds", optarg, &options->rounds);
  case OPTION_SECONDS:
    request->given |= TAKES_SECONDS;
    return take_size("seconds", optarg, &options->seconds);
  case OPTION_LINEAR:
    request->given |= TAKES_LINEAR;
    options->linear = true;
    return true;
  case OPTION_PLOT:
    request->given |= TAKES_PLOT;
    options->plot = optarg;
    return true;
  case OPTION_PLANS:
    request->given |= TAKES_PLANS;
    return take_plans(optarg, &options->plans);
  default: /* getopt_long said what is wrong */
    return false;
  }
}

/* Takes one option; false if it is wrong, which has been said. */
static bool take_option(int option, struct request *request)
{
  struct tool_options *options = &request->options;

  switch (option) {
  case 'd':
    request->given |= TAKES_DEVICE;
    options->device = optarg;
    if (*optarg == '\0')
      tool_error("--device: '' is no device");
    return *optarg != '\0';
  case OPTION_STAGING:
    request->given |= TAKES_STAGING;
    return take_size("staging", optarg, &options->staging);
  case OPTION_CHUNK:
    request->given |= TAKES_CHUNK;
    return take_size("chunk", optarg, &options->chunk);
  case OPTION_SHARD:
    request->given |= TAKES_SHARD;
    return take_size("shard-size", optarg, &options->shard);
  case OPTION_DURABLE:
    request->given |= TAKES_DURABLE;
    options->durable = true;
    return true;
  case 'q':
    request->given |= TAKES_QUIET;
    options->quiet = true;
    return true;
  case OPTION_JSON:
    request->given |= TAKES_JSON;
    options->json = true;
    return true;
  case 'h':
    request->help = true;
    return true;
  case 'V':
    request->version = true;
    return true;
  default:
    return take_bench_option(option, request);
  }
}

static const struct command *find_command(const char *name)
{
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(commands[i].name, name) == 0)
      return &commands[i];
  return NULL;
}

/* Whether a chunk and the staging that has to hold it can be; says what not. */
static bool sizes_suit(const struct tool_options *options)
{
  size_t chunk = options->chunk != 0 ? options->chunk : LEAST_CHUNK;

  if (chunk < LEAST_CHUNK) {
    tool_error("--chunk %zu: at least %d", chunk, LEAST_CHUNK);
    return false;
  }
  if (options->staging != 0 && options->staging < chunk) {
    tool_error("--staging %zu: at least %zu%s", options->staging, chunk,
               options->chunk != 0 ? ", the chunk" : "");
    return false;
  }
  return true;
}

/* Whether the command takes what was given; says what not. */
static bool suits(const struct command *command, const struct request *request,
                  int operand_count)
{
  unsigned excess = request->given & ~command->takes;

  for (int i = 0; i < OPTIONS; i++)
    if ((excess & option_texts[i].bit) != 0) {
      tool_error("%s takes no --%s", command->name, option_texts[i].name);
      return false;
    }
  if (operand_count != command->operand_count) {
    if (command->operand_count == 0)
      tool_error("%s takes no operand", command->name);
    else
      tool_error("%s takes %s", command->name, command->operands);
    return false;
  }
  return sizes_suit(&request->options);
}

static int run(int argc, char **argv)
{
  const struct command *command;
  struct request request = {.given = 0};
  int option;

  while ((option = getopt_long(argc, argv, "d:qhV", long_options, NULL)) != -1)
    if (!take_option(option, &request))
      return usage_error(NULL);
  argc -= optind;
  argv += optind;
  if (request.version) {
    print_version();
    return TOOL_OK;
  }
  command = argc > 0 ? find_command(argv[0]) : NULL;
  if (argc > 0 && command == NULL) {
    tool_error("there is no subcommand '%s'", argv[0]);
    return usage_error(NULL);
  }
  if (request.help) {
    print_help(command);
    return TOOL_OK;
  }
  if (command == NULL) {
    tool_error("a subcommand is needed");
    return usage_error(NULL);
  }
  if (!suits(command, &request, argc - 1))
    return usage_error(command);
  return command->run(&request.options, argv + 1);
}

/* A standard descriptor that is closed would be given to the next file that
 * is opened, and what is printed would end up in it.  Opened the wrong way
 * round, so that using it fails still. */
static void fill_standard_descriptors(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
      (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
  static char name[] = "clbytes"; /* for getopt_long's messages */
  int result;

  fill_standard_descriptors();
  /* A reader that went away is a write that failed, and said: a signal would
   * leave a copy's scratch file behind. */
  signal(SIGPIPE, SIG_IGN);
  if (argc > 0)
    argv[0] = name;
  result = run(argc, argv);
  errno = 0;
  if (ferror(stdout) || fclose(stdout) != 0) {
    tool_error("cannot write standard output%s%s", errno == 0 ? "" : ": ",
               errno == 0 ? "" : strerror(errno));
    if (result == TOOL_OK || result == TOOL_DIFFERS)
      result = TOOL_FAILED;
  }
  return result;
}
