#include "args.h"

#include <string.h>

#include "ptwm.h"

const char args_usage[] =
    "usage: ptwm-dump [-acefj] [-s N] [-x PART] [-m N] FILE [TENSOR ...]\n"
    "\n"
    "Shows what a .ptwm file holds, and what is wrong with it, where. Without TENSOR: header,\n"
    "footer, segments and tensors; with: how the tensors of those names (or #N: tensor number N)\n"
    "are stored.\n"
    "\n"
    "  -a, --all           how everything is stored\n"
    "  -c, --check         every checksum, padding and hash, and that everything decodes\n"
    "  -e, --entropy       what order-0 coding of each plane would take (decodes what is shown)\n"
    "  -f, --full          do not shorten long lists, texts and stretches of bytes\n"
    "  -j, --json          JSON\n"
    "  -m, --max-nbytes N  decode at most so many bytes in all\n"
    "  -s, --segment N     how segment number N is stored\n"
    "  -x, --hex PART      bytes, with the name of each field: header, footer, manifest, all,\n"
    "                      segment:N, tail:N, chunk:N:C, plane:N:C:P, or OFFSET+LENGTH\n"
    "  -h, --help          this text\n"
    "  -V, --version       the library's version\n"
    "\n"
    "Exit status: 0, 1 if something is wrong with the file, 2 for a wrong command line.\n";

bool args_number(const char *text, uint64_t *value)
{
    uint64_t n = 0;

    if (*text == 0)
        return false;
    for (; *text != 0; text++) {
        const unsigned digit = (unsigned)(*text - '0');
        if (*text < '0' || digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *value = n;
    return true;
}

static const struct {
    char letter;
    const char *name;
    bool has_value;
} options[] = {
    { 'a', "all", false },  { 'c', "check", false },     { 'e', "entropy", false }, { 'f', "full", false },
    { 'j', "json", false }, { 'm', "max-nbytes", true }, { 's', "segment", true },  { 'x', "hex", true },
    { 'h', "help", false }, { 'V', "version", false },
};

enum { N_OPTIONS = sizeof options / sizeof options[0] };

static bool complain(FILE *errors, const char *what, const char *argument)
{
    fprintf(errors, "ptwm-dump: %s: %s (see --help)\n", what, argument);
    return false;
}

static bool take_option(char letter, const char *value, struct dump_args *args, FILE *errors)
{
    switch (letter) {
    case 'a': args->all = true; break;
    case 'c': args->check = true; break;
    case 'e': args->entropy = true; break;
    case 'f': args->full = true; break;
    case 'j': args->json = true; break;
    case 'x': args->part = value; break;
    case 'h': args->help = true; break;
    case 'V': args->version = true; break;
    case 'm':
        if (!args_number(value, &args->max_nbytes) || args->max_nbytes == 0)
            return complain(errors, "not a number of bytes", value);
        break;
    default:
        if (!args_number(value, &args->segment))
            return complain(errors, "not the number of a segment", value);
        break;
    }
    return true;
}

/* --name, --name=value, --name value. *i moves on if the value is an argument of its own. */
static bool take_long(int argc, char **argv, int *i, struct dump_args *args, FILE *errors)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);

    for (int o = 0; o < N_OPTIONS; o++) {
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (strlen(options[o].name) != length || memcmp(options[o].name, name, length) != 0)
            continue;
        if (!options[o].has_value && value != NULL)
            return complain(errors, "this option takes no value", argv[*i]);
        if (options[o].has_value && value == NULL) {
            if (*i + 1 == argc)
                return complain(errors, "this option takes a value", argv[*i]);
            value = argv[++*i];
        }
        return take_option(options[o].letter, value, args, errors);
    }
    return complain(errors, "unknown option", argv[*i]);
}

/* -abc, -xvalue, -x value. */
static bool take_short(int argc, char **argv, int *i, struct dump_args *args, FILE *errors)
{
    for (const char *letter = argv[*i] + 1; *letter != 0; letter++) {
        const char *value = NULL;
        int o = 0;

        while (o < N_OPTIONS && options[o].letter != *letter)
            o++;
        if (o == N_OPTIONS)
            return complain(errors, "unknown option", argv[*i]);
        if (options[o].has_value) {
            if (letter[1] == 0 && *i + 1 == argc)
                return complain(errors, "this option takes a value", argv[*i]);
            value = letter[1] != 0 ? letter + 1 : argv[++*i];
        }
        if (!take_option(*letter, value, args, errors))
            return false;
        if (value != NULL)
            break;
    }
    return true;
}

bool args_parse(int argc, char **argv, struct dump_args *args, FILE *errors)
{
    bool are_options = true;
    int n_others = 0;

    memset(args, 0, sizeof *args);
    args->segment = PTWM_NONE;
    for (int i = 1; i < argc; i++) {
        if (are_options && strcmp(argv[i], "--") == 0) {
            are_options = false;
        } else if (are_options && argv[i][0] == '-' && argv[i][1] != 0) {
            if (!(argv[i][1] == '-' ? take_long(argc, argv, &i, args, errors)
                                    : take_short(argc, argv, &i, args, errors)))
                return false;
        } else {
            argv[1 + n_others++] = argv[i]; /* never beyond i */
        }
    }
    if (args->help || args->version)
        return true;
    if (n_others == 0)
        return complain(errors, "nothing to show", "FILE is missing");
    args->path = argv[1];
    args->tensors = argv + 2;
    args->n_tensors = n_others - 1;
    return true;
}
