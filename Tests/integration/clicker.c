/* SPDX-License-Identifier: MIT */
/* clicker LEVEL: plays a tone of this level, or silence (0), to the default sink; for each SIGUSR1 a click, whose time in nanoseconds of
 * CLOCK_MONOTONIC it prints. */
#include <spa/param/audio/format-utils.h>
#include <pipewire/pipewire.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct pw_stream *stream;
static atomic_int wanted;
static atomic_llong clicked;
static float level;
static unsigned played;

static void on_process(void *data)
{
    struct pw_buffer *buffer = pw_stream_dequeue_buffer(stream);
    if (buffer == NULL) return;
    struct spa_data *d = &buffer->buffer->datas[0];
    struct pw_time time;
    pw_stream_get_time_n(stream, &time, sizeof time);
    uint32_t frames = d->maxsize / 8;
    if (buffer->requested && buffer->requested < frames) frames = buffer->requested;
    float *samples = d->data;
    /* 400 Hz: a whole number of periods a second. */
    for (uint32_t i = 0; i < frames; i++) samples[2 * i] = samples[2 * i + 1] = level * sinf(2 * M_PI * (played++ % 120) / 120);
    if (atomic_exchange(&wanted, 0)) {
        for (int i = 0; i < 2 * 96; i++) samples[i] = i / 2 % 2 ? 0.9f : -0.9f;
        atomic_store(&clicked, time.now);
    }
    *d->chunk = (struct spa_chunk){.offset = 0, .stride = 8, .size = frames * 8};
    pw_stream_queue_buffer(stream, buffer);
}

static const struct pw_stream_events events = {PW_VERSION_STREAM_EVENTS, .process = on_process};

static void on_signal(int number)
{
    atomic_store(&wanted, 1);
}

static void on_tick(void *data, uint64_t expirations)
{
    long long time = atomic_exchange(&clicked, 0);
    if (time) printf("%lld\n", time), fflush(stdout);
}

int main(int argc, char *argv[])
{
    level = atof(argv[1]);
    pw_init(&argc, &argv);
    struct pw_main_loop *main_loop = pw_main_loop_new(NULL);
    struct pw_loop *loop = pw_main_loop_get_loop(main_loop);
    stream = pw_stream_new_simple(loop, "clicker", pw_properties_new(PW_KEY_MEDIA_TYPE, "Audio", PW_KEY_MEDIA_CATEGORY, "Playback", PW_KEY_NODE_NAME, "clicker", NULL), &events, NULL);
    uint8_t memory[1024];
    struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(memory, sizeof memory);
    const struct spa_pod *params[] = {spa_format_audio_raw_build(&builder, SPA_PARAM_EnumFormat,
        &SPA_AUDIO_INFO_RAW_INIT(.format = SPA_AUDIO_FORMAT_F32, .rate = 48000, .channels = 2, .position = {SPA_AUDIO_CHANNEL_FL, SPA_AUDIO_CHANNEL_FR}))};
    pw_stream_connect(stream, PW_DIRECTION_OUTPUT, PW_ID_ANY,
        PW_STREAM_FLAG_AUTOCONNECT | PW_STREAM_FLAG_MAP_BUFFERS | PW_STREAM_FLAG_RT_PROCESS, params, 1);
    signal(SIGUSR1, on_signal);
    puts("ready");
    fflush(stdout);
    struct spa_source *timer = pw_loop_add_timer(loop, on_tick, NULL);
    struct timespec often = {.tv_nsec = 20000000};
    pw_loop_update_timer(loop, timer, &often, &often, false);
    return pw_main_loop_run(main_loop);
}
