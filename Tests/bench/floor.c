// SPDX-License-Identifier: MIT
// The floors: what a bare copy of each picture costs, and what libvpx alone costs for it.
//
// floor WIDTH HEIGHT PICTURES FPS BITRATE SPEED <BGRx, prints milliseconds a picture: CPU of the copy, CPU of the encoder, time of the encoder.
// The encoder has one thread, and else what that of the GStreamer pipeline has, whose SPEED is 8: the encoder chooses by its own clock. A negative
// one is fixed. Reading and converting are not counted.
#include <libyuv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

static double now(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static double cpu(void) { return now(CLOCK_PROCESS_CPUTIME_ID); }

int main(int count, char **words) {
    if (count != 7) return 2;
    const int width = atoi(words[1]), height = atoi(words[2]), pictures = atoi(words[3]), fps = atoi(words[4]);
    const size_t bytes = (size_t)width * height * 4;
    uint8_t *picture = malloc(bytes), *copy = malloc(bytes);
    vpx_image_t *image = vpx_img_alloc(NULL, VPX_IMG_FMT_I420, width, height, 32);
    vpx_codec_enc_cfg_t configuration;
    vpx_codec_ctx_t context;
    if (!picture || !copy || !image || vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &configuration, 0)) return 1;
    configuration.g_w = width;
    configuration.g_h = height;
    configuration.g_timebase = (vpx_rational_t){1, fps};
    configuration.g_threads = 1;
    configuration.g_lag_in_frames = 0;
    configuration.kf_mode = VPX_KF_DISABLED;
    configuration.rc_end_usage = VPX_CBR;
    configuration.rc_target_bitrate = atoi(words[5]) / 1000;
    if (vpx_codec_enc_init(&context, vpx_codec_vp8_cx(), &configuration, 0)) return 1;
    vpx_codec_control(&context, VP8E_SET_CPUUSED, atoi(words[6]));
    vpx_codec_control(&context, VP8E_SET_STATIC_THRESHOLD, 1);

    // Resident before the first is counted.
    memset(copy, 1, bytes);
    double copying = 0, encoding = 0, waiting = 0;
    for (int index = 0; index < pictures; index++) {
        if (fread(picture, bytes, 1, stdin) != 1) return 1;
        double start = cpu();
        memcpy(copy, picture, bytes);
        copying += cpu() - start;
        ARGBToI420(copy, width * 4, image->planes[0], image->stride[0], image->planes[1], image->stride[1], image->planes[2],
                   image->stride[2], width, height);
        start = cpu();
        const double began = now(CLOCK_MONOTONIC);
        if (vpx_codec_encode(&context, image, index, 1, 0, VPX_DL_REALTIME)) return 1;
        vpx_codec_iter_t iterator = NULL;
        while (vpx_codec_get_cx_data(&context, &iterator)) continue;
        encoding += cpu() - start;
        waiting += now(CLOCK_MONOTONIC) - began;
    }
    printf("%.4f %.4f %.4f\n", copying / pictures, encoding / pictures, waiting / pictures);
    vpx_codec_destroy(&context);
    return 0;
}
